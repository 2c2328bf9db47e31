"""A gate's comparison: each strategy of HEAD's beside the same of BASE's, whose processes take turns in one round.

Pairs of processes, one of either side, take turns for a few seconds, and then other pairs, until a strategy is decided
or the time is over. What a process is off by, mostly by where its memory and its threads were put, is for its life; and
what other programs do comes and goes: a pair has to live for longer than that, and there have to be several.
"""

import math
from collections.abc import Callable, Sequence

from measure.engine.bench import REFERENCE, Settings
from measure.engine.comparison import Comparison
from measure.engine.record import View
from measure.engine.turns import Turns
from measure.judge.gate import Allowed, Result, error, of_run, pairs
from measure.pool.launcher import Launcher
from measure.pool.privacy import without_folders
from measure.run import text
from measure.run.request import Request, case_of, script_of
from measure.run.run import BASE, Status, Warning
from strategies import script
from workloads.spec import Workload

# Seconds of a gate, and the strategies that it judges, where nobody says it: what people take first.
BUDGET_S, STRATEGIES = 60.0, ("map_fn.graph", "vectorized_map.graph")
# Pairs of a strategy that live at a time, and their rounds: so many more until the median of each pair is as steady as
# processes of one strategy are alike, or so many in all. Beside a load that comes and goes every few seconds, medians
# scattered by 0.10 where one pair of a strategy lived for 8 rounds, and by 0.04 where two lived for 50.
PAIRS, ROUNDS, _MOST_ROUNDS, _STEADY = 2, 25, 100, 0.02
# So often is the memory of a strategy measured again that seems to need more.
_MEMORY_AGAIN = 4


class GateTurns(Turns):
    """The turns of a gate."""

    def race(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Time all strategies that work on both sides, pair after pair, until each is decided."""
        gate = self._bench
        assert isinstance(gate, Gate)
        while undecided := gate.undecided():
            self.end()
            both = [name for slug in undecided for name in (slug, slug + BASE)]
            for _ in range(_MOST_ROUNDS // ROUNDS):
                if not self._take_turns(dict.fromkeys(both, PAIRS), ROUNDS):
                    return "budget", f"the time budget was spent before {text.listed(undecided)} could be told"
                apart = [one for slug in undecided for one in pairs(gate[slug + BASE], gate[slug])[-PAIRS:]]
                if all(error(one) < _STEADY for one in apart):
                    break
        return "complete", "no more samples are needed"


class Gate(Comparison):
    """A comparison of HEAD's request in which BASE's takes part, whose values are those that both are held to."""

    turns = GateTurns

    def __init__(
        self,
        run_id: str,
        request: Request,
        launcher: Launcher,
        publish: Callable[[View], None],
        *,
        base: tuple[str, Request, Launcher],
        name: str,
        allowed: Allowed,
        leader: bool,
        settings: Settings,
    ) -> None:
        """``base``: BASE's name, request and launcher; ``name``: HEAD's; ``leader``: only the fastest are judged."""
        super().__init__(run_id, request, launcher, publish, settings=settings)
        self._names, self._base, self._base_launcher = (base[0], name), case_of(base[1]), base[2]
        self._head, self._allowed, self._leader = self.case.workload, allowed, leader
        self.case, self.reference_script = self._base, script.build_reference(self._base)
        for slug in request.strategies:
            self.enter(slug + BASE, script_of(base[1], slug))
        beside = f"a gate: {name} is measured beside {base[0]}, whose strategies end in {BASE}"
        self.warn(Warning(code="gate", message=without_folders(beside)))

    def launcher_of(self, slug: str) -> Launcher:
        return self._base_launcher if slug == REFERENCE or slug.endswith(BASE) else self.launcher

    def workload_of(self, slug: str) -> Workload:
        return self._base.workload if slug.endswith(BASE) else self._head

    def look_at_values(self, until_s: float = math.inf) -> None:
        """Measure memory and check values; more memory than is allowed is measured again, for what ops that run at the
        same time need together is not the same in each call: the least counts."""
        super().look_at_values(until_s)
        for _ in range(_MEMORY_AGAIN):
            judged = of_run(self.record, self._allowed, self._names).judged
            again = [item.head for item in judged if item.head and item.word == "more memory"]
            if not again:
                break
            for before in again:
                self.update(before.strategy, outcome="not_run", error=None)
            self._measure_memory(until_s)
            for before in again:
                now = self[before.strategy]
                if now.outcome == "not_run":  # there was no time for it
                    self.update(now.strategy, outcome=before.outcome, error=before.error)
                least = min((item.memory for item in (before, now) if item.memory), key=lambda one: one.peak_bytes)
                self.update(now.strategy, memory=least)

    def result(self) -> Result:
        return of_run(self.record, self._allowed, self._names, leader=self._leader)

    def undecided(self) -> list[str]:
        """The strategies of which more samples may tell more; to know the fastest, all that either side can call."""
        names = [item.name for item in self.result().judged if item.is_open]
        works = {item.strategy for item in self.record.measurements if item.outcome in ("ok", "wrong")}
        if self._leader and names:
            return [slug for slug in self.request.strategies if {slug, slug + BASE} & works]
        return [slug for slug in names if {slug, slug + BASE} <= works]
