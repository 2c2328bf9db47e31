"""A visit: one process of a strategy, which makes its first call, comes to its pace, is sampled for a while, and ends.

No other subject lives meanwhile, so that a strategy has the machine as a program of its own would.
"""

from msgspec.structs import replace

from measure.engine.bench import Bench
from measure.engine.dialogue import Dialogue, SubjectFailed
from measure.engine.record import original
from measure.judge import advice
from measure.model.run import Replica, Stage
from measure.subject import messages

# Where a call is longer, calling it with other values would take more time than it is worth.
_LONG_CALL_S = 0.1


def visit(bench: Bench, slug: str, round_number: int) -> Dialogue:
    """Visit a strategy, or its twin. One that fails keeps what was sampled before, and is not visited again."""
    record, dialogues = bench.record, bench.dialogues
    if record[slug].outcome not in ("ok", "wrong", "not_run"):
        return  # it has failed meanwhile
    replica, is_first = len(record[slug].replicas), not record[slug].replicas
    timeout_s = bench.timeout_s(slug)
    stage: Stage = "first_call"
    record.set_stage([slug], "first call")
    bench.say()
    subject = dialogues.start(bench.spec("timing", slug))
    try:
        ready = yield from dialogues.until(subject, messages.Ready, timeout_s)
        dialogues.send(subject, messages.CallFirst())
        first = yield from dialogues.until(subject, messages.FirstCall, timeout_s)
        record.add_replica(
            slug, Replica(id=replica, first_call_s=first.seconds, calls_per_sample=1, ended="interrupted")
        )
        if is_first:
            # What TensorFlow and XLA spend once in each process, whatever the strategy, is kept apart.
            why = replace(record[slug].why, runtime_start_s=ready.runtime_s)
            outcome = "ok" if record[slug].outcome == "not_run" else record[slug].outcome
            record.update(slug, first_call_s=first.seconds, outcome=outcome, why=why)
        stage = "sampling"
        record.set_stage([slug], "sampling")
        bench.say()
        dialogues.send(subject, messages.TakeSamples())
        while True:
            sampled = yield from dialogues.until(subject, messages.Sampled, timeout_s)
            record.add_samples(slug, replica, round_number, bench.passed_s, sampled)
            if sampled.last:
                break
        call_s = min(sampled.seconds)
        if is_first and slug == original(slug) and call_s < _LONG_CALL_S:
            dialogues.send(subject, messages.CallWithOtherValues())
            other = yield from dialogues.until(subject, messages.OtherValues, timeout_s)
            if other.seconds is not None and (warning := advice.compiled_values(call_s, other.seconds)):
                record.update(slug, warnings=[*record[slug].warnings, warning])
    except SubjectFailed as failure:
        record.end_replica(slug, replica, failure.outcome)
        bench.fail(slug, stage, failure)
        return
    dialogues.send(subject, messages.Stop())
    record.end_replica(slug, replica, "done")
