"""The timing subjects of a bench that live: they make first calls, and wait to be sampled until they are let go."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from measure.engine.bench import Bench
from measure.engine.dialogue import Dialogue, SubjectFailed
from measure.judge import advice
from measure.model.run import Replica, Stage
from measure.subject import messages
from measure.subject.timing import SAMPLE_S, SEVERAL_THREADS, calls_per_sample

_LEAST_SAMPLE_S = 1e-9
# A sample that lasts this many times the usual brings its own data into the caches, without a call before it.
_WARM_WITHIN = 10
# Where a call is longer, calling it with other values would take more time than it is worth.
_LONG_CALL_S = 0.1


@dataclass(frozen=True)
class Live:
    """A timing subject that waits to be sampled: ``calls`` per sample, each of about ``call_s`` seconds."""

    subject: int
    slug: str
    replica: int
    call_s: float
    calls: int


class Living:
    """The subjects that live, in the order in which they were started; a strategy that fails loses all of its."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._live: dict[int, Live] = {}
        self._busy_cores: dict[str, float] = {}  # the most of any sample of a strategy

    def __iter__(self) -> Iterator[Live]:
        return iter(list(self._live.values()))

    def __len__(self) -> int:
        return len(self._live)

    def get(self, subject: int) -> Live | None:
        return self._live.get(subject)

    def bytes(self) -> int:
        """Bytes that all of them take together."""
        return sum(self._bench.live_bytes(live.slug) for live in self)

    def enter(self, slug: str) -> Dialogue:
        """Start a subject, time its first call and let it settle; then it lives and waits to be sampled."""
        bench, record, dialogues = self._bench, self._bench.record, self._bench.dialogues
        if record[slug].outcome not in ("ok", "wrong", "not_run"):
            return  # another process of it has failed meanwhile
        record.set_stage([slug], "first call")
        bench.say()
        timeout_s = bench.timeout_s(slug)
        subject = dialogues.start(bench.spec("timing", slug))
        try:
            ready = yield from dialogues.until(subject, messages.Ready, timeout_s)
            dialogues.send(subject, messages.CallFirst())
            first = yield from dialogues.until(subject, messages.FirstCall, timeout_s)
            dialogues.send(subject, messages.Settle())
            settled = yield from dialogues.until(subject, messages.Settled, timeout_s)
            other_s = None
            if record[slug].first_call_s is None and settled.seconds < _LONG_CALL_S:
                dialogues.send(subject, messages.CallWithOtherValues())
                other_s = (yield from dialogues.until(subject, messages.OtherValues, timeout_s)).seconds
        except SubjectFailed as failure:
            self._fail(slug, "first_call", failure)
            return
        calls, replica = calls_per_sample(settled.seconds), len(record[slug].replicas)
        self._live[subject] = Live(subject, slug, replica, settled.seconds, calls)
        record.add_replica(
            slug,
            Replica(id=replica, first_call_s=first.seconds, calls_per_sample=calls, ended="interrupted"),
        )
        item = record[slug]
        if item.first_call_s is None:
            outcome = "ok" if item.outcome == "not_run" else item.outcome
            # What TensorFlow and XLA spend once in each process, whatever the strategy, is kept apart.
            why = replace(item.why, runtime_start_s=ready.runtime_s)
            record.update(slug, first_call_s=first.seconds, outcome=outcome, why=why)
            if other_s is not None and (warning := advice.compiled_values(settled.seconds, other_s)):
                record.update(slug, warnings=[*item.warnings, warning])
        record.set_stage([slug], "sampling")
        bench.say()

    def sample(self, live: Live, round_number: int, warm_s: float) -> Dialogue:
        """Take a sample of one of them, after calls of ``warm_s`` seconds to come to its pace."""
        bench = self._bench
        expected_s = live.call_s * live.calls
        warm_s = warm_s if expected_s < _WARM_WITHIN * SAMPLE_S else 0.0
        bench.dialogues.send(live.subject, messages.TakeSample(live.calls, warm_s))
        timeout_s = bench.settings.timeout_floor_s + 10 * (expected_s + live.call_s)
        try:
            sample = yield from bench.dialogues.until(live.subject, messages.Sample, timeout_s)
        except SubjectFailed as failure:
            del self._live[live.subject]
            bench.record.end_replica(live.slug, live.replica, failure.outcome)
            self._fail(live.slug, "sampling", failure)
            return
        self._busy_cores[live.slug] = max(self._busy_cores.get(live.slug, 0.0), sample.busy_cores)
        assert bench.started_s is not None
        at_s = time.monotonic() - bench.started_s
        # A clock of coarse resolution may not have moved; the analysis takes logarithms.
        sample_s = max(sample.seconds, _LEAST_SAMPLE_S)
        bench.record.add_sample(live.slug, live.replica, round_number, at_s, sample_s)

    def is_threaded(self, slug: str) -> bool:
        """True if its calls are of several threads, as far as is known."""
        return self._busy_cores.get(slug, math.inf) > SEVERAL_THREADS

    def let_go(self, subjects: Iterable[Live], reason: str) -> None:
        """Stop these; ``reason`` says in their replicas why they ended."""
        for live in subjects:
            del self._live[live.subject]
            self._bench.dialogues.send(live.subject, messages.Stop())
            self._bench.record.end_replica(live.slug, live.replica, reason)

    def _fail(self, slug: str, stage: Stage, failure: SubjectFailed) -> None:
        """A strategy that has failed once is no longer sampled, whatever its other processes do."""
        self.let_go([live for live in self if live.slug == slug], failure.outcome)
        self._bench.fail(slug, stage, failure)
