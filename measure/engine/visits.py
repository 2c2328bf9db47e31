"""A visit: one process of a strategy, which makes its first call, comes to its pace, is sampled for a while, and ends.

While a process is sampled, nothing else runs: up to eleven others wait that have made their first call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.engine.bench import Bench
from measure.engine.dialogue import TIME_OVER, Dialogue, Part, SubjectFailed
from measure.engine.record import original
from measure.model import forecast
from measure.model.run import Stage
from measure.subject import messages


@dataclass
class Process:
    """A process of a strategy: its subject, which replica of the strategy it is once it has made its first call, and
    true where it was asked for samples."""

    slug: str
    subject: int | None = None
    replica: int | None = None
    sampled: bool = False


def call_seconds(bench: Bench, slug: str) -> tuple[float, float]:
    """The seconds of a strategy's first call, and of a later one, as measured or else by forecast."""
    item, estimate = bench.record[slug], bench.forecast.per_strategy[original(slug)]
    return item.first_call_s or estimate.first_call_s, item.latency.median_s if item.latency else estimate.latency_s


def prepare(bench: Bench, slugs: Sequence[str]) -> list[Process]:
    """Start a process of every strategy, or twin, and have it make its first call; those that did, in this order.

    Raises `Cancelled`, `HostLost` and `TimeIsUp`.
    """
    prepared: dict[int, Process] = {}
    # The longest first call first, so that no processor idles at the end.
    longest_first = sorted(enumerate(slugs), key=lambda turn: call_seconds(bench, turn[1])[0], reverse=True)
    dialogues = (_prepare(bench, slug, turn, prepared) for turn, slug in longest_first)
    bench.dialogues.hold(dialogues, at_once=forecast.PREPARED_AT_ONCE)
    return [prepared[turn] for turn in sorted(prepared)]


def sample(bench: Bench, prepared: Sequence[Process], round_number: int, goes_on: Callable[[], bool]) -> None:
    """Sample processes one after the other, as long as ``goes_on``, and end them all.

    One that fails keeps what was sampled before. Raises `Cancelled`, `HostLost` and `TimeIsUp`.
    """
    for process in prepared:
        if goes_on():
            bench.dialogues.hold([_sample(bench, process, round_number)])
        else:
            _stop(bench, process)


def _prepare(bench: Bench, slug: str, turn: int, prepared: dict[int, Process]) -> Dialogue:
    record = bench.record
    if record[slug].outcome not in ("ok", "wrong", "not_run"):
        return  # it has failed meanwhile
    record.set_stage([slug], "first call")
    bench.say()
    process = Process(slug)
    try:
        yield from bench.dialogues.undisturbed(lambda: _begin(bench, process))
    except SubjectFailed as failure:
        _fail(bench, process, "first_call", failure)
    else:
        prepared[turn] = process


def _begin(bench: Bench, process: Process) -> Part[None]:
    """Start a process and have it make its first call; a new one, where it is not the first that is begun."""
    record, dialogues, slug = bench.record, bench.dialogues, process.slug
    _stop(bench, process)
    if process.replica is not None:
        # Its figures are of something that stood still.
        kept = [replica for replica in record[slug].replicas if replica.id != process.replica]
        record.update(slug, replicas=kept)
    process.replica = None
    timeout_s = bench.timeout_s(slug)
    process.subject = subject = dialogues.start(bench.spec("timing", slug))
    ready = yield from dialogues.until(subject, messages.Ready, timeout_s)
    dialogues.send(subject, messages.CallFirst())
    first = yield from dialogues.until(subject, messages.FirstCall, timeout_s)
    process.replica = replica = record.add_replica(slug, first.seconds)
    if replica > 0:
        return
    # What TensorFlow and XLA spend once in each process, whatever the strategy, is kept apart.
    why = replace(record[slug].why, runtime_start_s=ready.runtime_s)
    outcome = "ok" if record[slug].outcome == "not_run" else record[slug].outcome
    record.update(slug, first_call_s=first.seconds, outcome=outcome, why=why)


def _sample(bench: Bench, process: Process, round_number: int) -> Dialogue:
    record, slug = bench.record, process.slug
    record.set_stage([slug], "sampling")
    bench.say()
    try:
        yield from bench.dialogues.undisturbed(lambda: _take_samples(bench, process, round_number))
    except SubjectFailed as failure:
        _fail(bench, process, "sampling", failure)
        return
    _stop(bench, process)
    record.end_replica(slug, process.replica, "done")


def _take_samples(bench: Bench, process: Process, round_number: int) -> Part[messages.Sampled]:
    """Have a process take its samples, and return the last of them; another one, where it has taken some before."""
    if process.sampled:
        yield from _begin(bench, process)
    process.sampled = True
    assert process.subject is not None, "it has made its first call"
    bench.dialogues.send(process.subject, messages.TakeSamples())
    while True:
        sampled = yield from bench.dialogues.until(process.subject, messages.Sampled, bench.timeout_s(process.slug))
        bench.record.add_samples(process.slug, process.replica, round_number, bench.passed_s, sampled)
        if sampled.last:
            return sampled


def _stop(bench: Bench, process: Process) -> None:
    """Have a process end, if it was started."""
    if process.subject is not None:
        bench.dialogues.send(process.subject, messages.Stop())


def _fail(bench: Bench, process: Process, stage: Stage, failure: SubjectFailed) -> None:
    bench.record.end_replica(process.slug, process.replica, _ended(failure))
    bench.fail(process.slug, stage, failure)


def _ended(failure: SubjectFailed) -> str:
    """The word for the end of a process that failed, or that the end of the run has interrupted."""
    return "interrupted" if failure.error.type == TIME_OVER else failure.outcome
