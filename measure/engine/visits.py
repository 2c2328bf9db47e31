"""A visit: one process of a strategy, which makes its first call, comes to its pace, is sampled for a while, and ends.

While a process is sampled, nothing else runs: up to eleven others wait that have made their first call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.engine.bench import Bench
from measure.engine.dialogue import Dialogue, SubjectFailed
from measure.engine.record import original
from measure.judge import advice
from measure.model import forecast
from measure.model.run import Replica
from measure.subject import messages

# Where a call is forecast to be longer, calling it with other values would take more time than it is worth.
_LONG_CALL_S = 0.02


@dataclass(frozen=True)
class Prepared:
    """A process that has made its first call: its subject, which replica of its strategy it is, and the seconds of a
    call with other values than those that are timed, where it has made one."""

    subject: int
    slug: str
    replica: int
    other_s: float | None


def call_seconds(bench: Bench, slug: str) -> tuple[float, float]:
    """The seconds of a strategy's first call, and of a later one, as measured or else by forecast."""
    item, estimate = bench.record[slug], bench.forecast.per_strategy[original(slug)]
    return item.first_call_s or estimate.first_call_s, item.latency.median_s if item.latency else estimate.latency_s


def prepare(bench: Bench, slugs: Sequence[str]) -> list[Prepared]:
    """Start a process of every strategy, or twin, and have it make its first call; those that did, in this order.

    Raises `Cancelled` and `HostLost`.
    """
    prepared: dict[int, Prepared] = {}
    # The longest first call first, so that no processor idles at the end.
    longest_first = sorted(enumerate(slugs), key=lambda turn: call_seconds(bench, turn[1])[0], reverse=True)
    dialogues = (_prepare(bench, slug, turn, prepared) for turn, slug in longest_first)
    bench.dialogues.hold(dialogues, at_once=forecast.PREPARED_AT_ONCE)
    return [prepared[turn] for turn in sorted(prepared)]


def sample(bench: Bench, prepared: Sequence[Prepared], round_number: int, goes_on: Callable[[], bool]) -> None:
    """Sample processes one after the other, as long as ``goes_on``, and end them all.

    One that fails keeps what was sampled before. Raises `Cancelled` and `HostLost`.
    """
    for process in prepared:
        if goes_on():
            bench.dialogues.hold([_sample(bench, process, round_number)])
        else:
            bench.dialogues.send(process.subject, messages.Stop())


def _prepare(bench: Bench, slug: str, turn: int, prepared: dict[int, Prepared]) -> Dialogue:
    record, dialogues = bench.record, bench.dialogues
    if record[slug].outcome not in ("ok", "wrong", "not_run"):
        return  # it has failed meanwhile
    timeout_s, replica, other_s = bench.timeout_s(slug), None, None
    record.set_stage([slug], "first call")
    bench.say()
    subject = dialogues.start(bench.spec("timing", slug))
    try:
        ready = yield from dialogues.until(subject, messages.Ready, timeout_s)
        dialogues.send(subject, messages.CallFirst())
        first = yield from dialogues.until(subject, messages.FirstCall, timeout_s)
        replica = len(record[slug].replicas)
        begun = Replica(id=replica, first_call_s=first.seconds, calls_per_sample=1, ended="interrupted")
        record.add_replica(slug, begun)
        if replica == 0:
            # What TensorFlow and XLA spend once in each process, whatever the strategy, is kept apart.
            why = replace(record[slug].why, runtime_start_s=ready.runtime_s)
            outcome = "ok" if record[slug].outcome == "not_run" else record[slug].outcome
            record.update(slug, first_call_s=first.seconds, outcome=outcome, why=why)
        if replica == 0 and slug == original(slug) and bench.forecast.per_strategy[slug].latency_s < _LONG_CALL_S:
            dialogues.send(subject, messages.CallWithOtherValues())
            other_s = (yield from dialogues.until(subject, messages.OtherValues, timeout_s)).seconds
    except SubjectFailed as failure:
        if replica is not None:
            record.end_replica(slug, replica, failure.outcome)
        bench.fail(slug, "first_call", failure)
        return
    prepared[turn] = Prepared(subject, slug, replica, other_s)


def _sample(bench: Bench, process: Prepared, round_number: int) -> Dialogue:
    record, dialogues = bench.record, bench.dialogues
    subject, slug, replica = process.subject, process.slug, process.replica
    timeout_s = bench.timeout_s(slug)
    record.set_stage([slug], "sampling")
    bench.say()
    dialogues.send(subject, messages.TakeSamples())
    try:
        while True:
            sampled = yield from dialogues.until(subject, messages.Sampled, timeout_s)
            record.add_samples(slug, replica, round_number, bench.passed_s, sampled)
            if sampled.last:
                break
    except SubjectFailed as failure:
        record.end_replica(slug, replica, failure.outcome)
        bench.fail(slug, "sampling", failure)
        return
    dialogues.send(subject, messages.Stop())
    record.end_replica(slug, replica, "done")
    if process.other_s is not None and (warning := advice.compiled_values(min(sampled.seconds), process.other_s)):
        record.update(slug, warnings=[*record[slug].warnings, warning])
