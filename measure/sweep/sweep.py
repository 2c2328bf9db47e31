"""One sweep from its request to its crossovers: which points are measured, in which order, and how closely.

First the grid: of one axis every point, the smallest first, so that lines grow; of two axes as `winners` asks for them.
Each point gets its minimum, one process and a few rounds of every strategy. What is left of the budget goes to where it
decides something: to what stands out from its line, between the points that a crossing lies between, and to leaders
that tie. The values of a swept option are of one case: there the leaders of all points are sampled together, in turns.
"""

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

from msgspec.structs import replace

from measure.engine import rounds
from measure.engine.bench import Settings
from measure.engine.dialogue import Cancelled, Dialogues, HostLost
from measure.engine.launcher import Launcher
from measure.engine.record import View
from measure.machine import environment
from measure.model.place import utc_now
from measure.model.run import Analysis, Crossover, Error, Point, Run, Status, Warning
from measure.sweep import analysis as sweep_analysis
from measure.sweep import contenders as sweep_contenders
from measure.sweep import winners
from measure.sweep.contenders import Cell
from measure.sweep.forecast import DOES_NOT_FIT, OVER_BUDGET, Plan, key, known_before, plan
from measure.sweep.lines import lines
from measure.sweep.request import SweepRequest
from measure.sweep.visit import ROUNDS, Visit

# Rounds of everybody at every point, and seconds that one may take: there are fewer strategies to share them than in a
# comparison, and many points.
SCOUT_ROUNDS = 3
SCOUT_ROUND_S = 0.15
# Processes at points beside a crossing, and of leaders that tie; at least two, so that their spread is known.
PROCESSES = 3
# A crossing is refined until its interval spans less than this factor, with at most so many points between the grid's.
CLOSE = 1.2
MOST_ADDED = 3
# Refined are crossings near the lead: the lines cross at most so many times above the fastest strategy there.
NEAR_LEAD = 1.5
MOST_CROSSINGS = 4
# More than so many leaders that tie are not told apart at every point; nor among all values of an option.
MOST_LEADERS = 4
MOST_VALUES = 6
# With more processes others may turn out to tie with the leader: so often is looked.
LOOKS = 2
# So many doubtful latencies are measured again, in this share of the budget; and those for which one more process takes
# more than another share are not.
MOST_DOUBTED = 6
DOUBTS_SHARE = 0.1
DOUBT_SHARE = 0.04

_LOAD_WINDOW_S = 0.1
_SPENT = "the time budget was spent before this point: continue the sweep, or give it more"
_UNTIMED = "not timed here: the time budget was spent; continue the sweep, or give it more"
_HOPELESS = {"timeout": "it ran into the time limit", "out_of_memory": "it ran out of memory"}


@dataclass
class _Case:
    """A point and what measures it. ``lines``: the strategies that are measured here, where not all are; ``taken``:
    what an earlier run knows of it; ``begun``: whether its visit has."""

    point: Point
    lines: tuple[str, ...] = ()
    taken: Point | None = None
    visit: Visit | None = None
    version: int = -1
    begun: bool = False


class Sweep:
    """Runs one sweep, with the protocol of a `Comparison`. ``taken``: what an earlier run knows of its points, which is
    not measured again: all of points that are ``complete``, a part of those that are ``waiting``."""

    def __init__(
        self,
        run_id: str,
        request: SweepRequest,
        launcher: Launcher,
        publish: Callable[[View], None],
        *,
        settings: Settings | None = None,
        parent: str | None = None,
        taken: Sequence[Point] = (),
    ) -> None:
        self.request = request.base
        self._asked, self._launcher, self._publish = request, launcher, publish
        settings = settings or Settings()
        rules = changed(
            settings.rules,
            scout_rounds=min(SCOUT_ROUNDS, settings.rules.scout_rounds),
            scout_round_s=min(SCOUT_ROUND_S, settings.rules.scout_round_s),
        )
        self._settings = changed(settings, rules=rules, process_peaks_s=0.0)
        self._dialogues = Dialogues(launcher)
        self._plan: Plan = plan(request, environment.available_memory(), known_before(request, taken))
        self._axes = [axis.name for axis in request.axes]
        self._cases = self._make_cases(taken)
        self._run = Run(
            id=run_id,
            kind="sweep",
            parent=parent,
            created=utc_now(),
            request=request.base.record(),
            analysis=Analysis(seed=rounds.seed(run_id)),
            axes=list(request.axes),
        )
        self._message, self._stages = "", dict[str, str]()
        self._version = 0
        self._started_s: float | None = None
        self._suspected: set[str] = set()
        # Scripts that cannot be made are said before anything is queued.
        for case in self._waiting()[:1]:
            self._new_visit(case)

    def view(self) -> View:
        return View(
            self._current(), self._stages, self._message, self._version, self._started_s, self._plan.forecast.seconds
        )

    def cancel(self) -> None:
        self._dialogues.cancel()
        for case in list(self._cases):
            if case.visit is not None:
                case.visit.cancel()

    @property
    def cancelled(self) -> bool:
        return self._dialogues.cancelled

    def warn(self, warning: Warning) -> None:
        """Add a warning about the sweep as a whole, once per code."""
        if all(known.code != warning.code for known in self._run.warnings):
            self._run = replace(self._run, warnings=[*self._run.warnings, warning])

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a strategy, the host or a person did."""
        self._started_s = time.monotonic()
        status: Status
        try:
            self._run = replace(self._run, started=utc_now(), environment=self._environment())
            status, reason = self._measure()
        except Cancelled:
            status, reason = "cancelled", "cancelled by a person"
        except HostLost:
            status, reason = "interrupted", "the measuring process ended unexpectedly; what was measured is kept"
        finally:
            self._dialogues.end()
            for case in self._cases:
                if case.visit is not None:
                    case.visit.end()
        run = replace(self._current(), warnings=self._warnings())
        self._run = sweep_analysis.close(run, status, reason, utc_now())
        self._stages, self._message = {}, "finished"
        self._version += 1
        self._publish(View(self._run, {}, self._message, self._version, self._started_s, 0.0))
        return self._run

    # --- the parts ---------------------------------------------------------------------------------------------------

    def _measure(self) -> tuple[Status, str]:
        if len(self._axes) == 1:
            self._first_line()
            for number, case in enumerate(waiting := self._waiting()):
                if self._left_s() <= 0:
                    break
                self._visit(case, self._left_s() / (len(waiting) - number))
        else:
            self._fill_map()
        if left := self._waiting():
            for case in left:
                case.point = sweep_analysis.undone(self._current(), case.point, "budget", _SPENT, utc_now())
            return "budget", f"the time budget was spent before {len(left)} of the points"
        if len(self._axes) == 1:
            # Of points that were taken over, crossings are not known yet.
            self._analyse()
            self._doubt()
            if by_option := self._asked.axes[0].kind == "option":
                self._tell_values_apart()
            for _ in self._refine():
                self._analyse()
                if self._left_s() <= 0:
                    return "complete", "every point is measured; the time budget ended the refining of crossings"
            if by_option:
                return "complete", "every value is measured, and those that lead with more processes"
        for case in self._cases:
            if self._left_s() > 0:
                self._tell_leaders_apart(case)
        if len(self._axes) == 2:
            return "complete", "every cell is measured, or follows from those around it"
        return "complete", "every point is measured, and crossings are refined"

    def _first_line(self) -> None:
        """Two points of the strategy that is quickest to be measured, so that a line can be seen soon."""
        if any(case.taken for case in self._cases):
            return
        cases = self._waiting()[:2]
        shared = [set(self._lines(case)) - set(self._left_out(case)) for case in cases]
        if len(cases) < 2 or not (lines := set.intersection(*shared)):
            return
        estimates = [self._visit_of(case).estimates for case in cases]
        quickest = min(
            sorted(lines),
            key=lambda line: sum(
                found[self._slug(case, line)].first_call_s + found[self._slug(case, line)].latency_s
                for case, found in zip(cases, estimates, strict=True)
            ),
        )
        for case in cases:
            visit, slug = self._begin(case), self._slug(case, quickest)
            visit.look([slug])
            visit.time(self._left_s(), [slug])

    def _fill_map(self) -> None:
        rows, columns = (axis.values for axis in self._asked.axes)
        cells = {(rows.index(c.point.at[self._axes[0]]), columns.index(c.point.at[self._axes[1]])): c
                 for c in self._cases}  # fmt: skip
        while self._left_s() > 0:
            known = {
                cell: tuple(case.point.ranking[0]) if case.point.ranking else ()
                for cell, case in cells.items()
                if case.point.status == "complete"
            }
            still_open = [cell for cell, case in cells.items() if case.point.status in ("waiting", "running")]
            if not still_open:
                return
            leads = {cell: lead for cell in known if (lead := _lead(cells[cell].point)) is not None}
            cell = winners.next_cell(known, still_open, leads)
            if cell is None:
                for each in still_open:
                    self._infer(cells[each], winners.inferred(each, known))
                return
            self._visit(cells[cell], self._left_s() / 4)
            # Cells are inferred from this one, and one process in some dozens is far off its strategy's pace.
            self._doubt_leaders(cells[cell])
            self._tell_leaders_apart(cells[cell])

    def _infer(self, case: _Case, leaders: list[str]) -> None:
        first, *others = leaders
        said = f"{first} wins" if not others else f"{', '.join([first, *others[:-1]])} and {others[-1]} tie"
        self._settle(
            case,
            status="skipped",
            reason=f"inferred: all around it {said}",
            ranking=[leaders],
            verdict=f"{said} here, inferred from the points around it.",
        )

    def _refine(self) -> Iterator[None]:
        """Measure where lines cross near the lead: between the points that a crossing lies between, and those points
        themselves with more processes. Yields after each step."""
        axis = self._axes[0]
        for crossover in self._near_lead():
            added = 0
            while True:
                found = self._again(crossover)
                beside = self._beside(found) if found is not None else None
                if found is None or beside is None or found.low is None or found.high is None:
                    break
                pair = self._varying(found)
                if few := [case for case in beside if _fewest(case.point, pair) < PROCESSES]:
                    for case in few:
                        self._more_processes(case, pair)
                    yield
                    continue
                low, high = beside[0].point.at[axis], beside[1].point.at[axis]
                middle = _between(low, high, found.low, found.high)
                if found.high <= CLOSE * found.low or middle is None or added >= MOST_ADDED:
                    break
                added += 1
                self._add(middle, pair)
                yield

    def _doubt(self) -> None:
        """A second process, and if need be a third, for what stands out from its line, or is scattered beyond use."""
        spared_s = max(0.0, self._left_s() - DOUBTS_SHARE * self.request.budget_s)
        for processes in range(2, PROCESSES + 1):
            for cell in self._cells(sweep_contenders.doubtful)[:MOST_DOUBTED]:
                if self._left_s() > spared_s and cell.processes < processes and self._is_quick(cell):
                    case = self._cases[cell.place]
                    self._begin(case).time_more([self._slug(case, cell.slug)], 1, self._left_s())
                    self._finish(case)
            self._analyse()

    def _tell_values_apart(self) -> None:
        """More processes of what ties for the lead over all values of a swept option."""
        for _ in range(LOOKS):
            few = [cell for cell in self._cells(sweep_contenders.leading)[:MOST_VALUES] if cell.processes < PROCESSES]
            if not few or self._left_s() <= 0:
                return
            self._sample_together(few, PROCESSES - min(cell.processes for cell in few))
            self._analyse()

    def _sample_together(self, cells: Sequence[Cell], processes: int) -> None:
        """So many further processes of strategies of several values of an option, sampled in the same rounds."""
        found = {self._slug(self._cases[cell.place], cell.slug): self._cases[cell.place] for cell in cells}
        visits = {slug: self._begin(case) for slug, case in found.items()}
        asked = changed(self.request, strategies=tuple(found))
        together = Visit(self._run.id, asked, self._launcher, self._say, self._dialogues, self._settings)
        assert self._started_s is not None
        try:
            known = [visit.measurement(slug) for slug, visit in visits.items()]
            together.begin(self._started_s, {}, Point(at={}, measurements=known))
            try:
                together.time_more(list(found), processes, self._left_s())
            finally:
                # What was sampled before a cancel is kept.
                for slug, visit in visits.items():
                    visit.adopt(together.measurement(slug))
                    self._finish(found[slug])
        finally:
            together.end()

    def _say(self, view: View) -> None:
        """A visit of several points publishes: its results are theirs in the end."""
        self._stages, self._message = {}, f"values that lead: {view.message}"
        self._publish(self.view())

    def _cells(self, which: Callable[..., list[Cell]]) -> list[Cell]:
        return which([case.point for case in self._cases], self._asked.axes, self._run.analysis)

    def _is_quick(self, cell: Cell) -> bool:
        """Whether one more process costs little of the budget."""
        item = cell.measurement
        latency_s = item.latency.median_s if item.latency else 0.0
        return (item.first_call_s or 0.0) + ROUNDS * latency_s < DOUBT_SHARE * self.request.budget_s

    def _doubt_leaders(self, case: _Case) -> None:
        """A second process for what may lead at a point, by one process of each."""
        visit, rules = self._begin(case), self._settings.rules
        near = visit.within(rules.doubted_within)[:MOST_LEADERS]
        few = [slug for slug in near if visit.processes(slug) < rules.replicas_doubted]
        if len(near) > 1 and few:
            visit.time_more(few, 1, self._left_s())
            self._finish(case)

    def _tell_leaders_apart(self, case: _Case) -> None:
        """More processes of leaders that tie at a point."""
        if case.point.status != "complete":
            return
        tied = case.point.ranking[0] if case.point.ranking else []
        if not case.begun and (len(tied) < 2 or _fewest(case.point, tied) >= PROCESSES):
            return  # taken over, and nothing is open
        visit = self._begin(case)
        leaders = visit.contenders()[:MOST_LEADERS]
        few = [slug for slug in leaders if visit.processes(slug) < PROCESSES]
        if len(leaders) > 1 and few:
            missing = PROCESSES - min(visit.processes(slug) for slug in few)
            visit.time_more(leaders, missing, self._left_s())
            self._finish(case)

    # --- one point ---------------------------------------------------------------------------------------------------

    def _visit(self, case: _Case, budget_s: float) -> None:
        """Measure all that is unknown at a point."""
        visit = self._begin(case)
        visit.look(visit.unknown())
        suspects = {self._line(case, slug) for slug in visit.suspects()} - self._suspected
        if suspects:
            self._suspected |= suspects
            visit.ask_onednn()
        visit.time(budget_s)
        self._finish(case)
        self._analyse()

    def _begin(self, case: _Case) -> Visit:
        """The visit of a point, with its reference, and with what an earlier run knows."""
        visit = self._visit_of(case)
        if not case.begun:
            case.begun = True
            if case.point.status == "waiting":
                case.point = replace(case.point, status="running")
            assert self._started_s is not None
            left_out = {self._slug(case, line): error for line, error in self._left_out(case).items()}
            taken = case.taken and replace(
                case.taken,
                measurements=[
                    replace(item, strategy=self._slug(case, item.strategy)) for item in case.taken.measurements
                ],
            )
            visit.begin(self._started_s, left_out, taken)
        return visit

    def _finish(self, case: _Case) -> None:
        assert case.visit is not None
        case.visit.finish("complete", "", Error(type=OVER_BUDGET, message=_UNTIMED))
        self._settle(case, status="complete")

    def _settle(self, case: _Case, **changes: Any) -> None:
        case.point = replace(case.point, **changes)
        self._version += 1
        self._publish(self.view())

    def _add(self, value: int, lines: tuple[str, ...]) -> None:
        """Measure these lines at a point between those of the grid."""
        case = _Case(Point(at={self._axes[0]: value}), lines)
        self._cases = sorted([*self._cases, case], key=lambda each: tuple(each.point.at.values()))
        self._visit(case, self._left_s())
        self._more_processes(case, lines)

    def _more_processes(self, case: _Case, lines: Iterable[str]) -> None:
        visit = self._begin(case)
        slugs = [slug for line in lines if visit.is_timed(slug := self._slug(case, line))]
        if slugs:
            missing = max(1, PROCESSES - min(map(visit.processes, slugs)))
            visit.time_more(slugs, missing, self._left_s())
            self._finish(case)

    def _left_out(self, case: _Case) -> dict[str, Error]:
        """Lines that are not run at a point, with the reason: by forecast, or since a smaller point was too much."""
        found = {
            self._line(case, slug): error for slug, error in self._plan.left_out.get(key(case.point.at), {}).items()
        }
        for other in self._cases:
            if self._is_smaller(other.point, case.point):
                for item in other.point.measurements:
                    if item.outcome in _HOPELESS:
                        where = self._where(other.point)
                        found[item.strategy] = Error(
                            type=DOES_NOT_FIT if item.outcome == "out_of_memory" else "LeftOut",
                            message=f"not run here: at {where} {_HOPELESS[item.outcome]} already",
                        )
        return {line: error for line, error in found.items() if line in self._lines(case)}

    def _is_smaller(self, one: Point, other: Point) -> bool:
        """Whether a point is the smaller one: less or as much in every size, and otherwise the same."""
        return one.at != other.at and all(
            one.at[axis.name] <= other.at[axis.name]
            if axis.kind == "size"
            else one.at[axis.name] == other.at[axis.name]
            for axis in self._asked.axes
        )

    # --- crossings ---------------------------------------------------------------------------------------------------

    def _near_lead(self) -> list[Crossover]:
        """Crossings that may change who leads, those nearest to the lead first."""
        found = []
        for each in self._run.crossovers:
            beside = self._beside(each)
            if beside is None:
                continue
            heights = []
            for case in beside:
                latency = self._latencies(case)
                heights.append(min(latency[each.a], latency[each.b]) / min(latency.values()))
            if max(heights) <= NEAR_LEAD:
                found.append((max(heights), each))
        return [each for _, each in sorted(found, key=lambda item: item[0])][:MOST_CROSSINGS]

    def _again(self, crossover: Crossover) -> Crossover | None:
        """What is known by now of a crossing."""
        pair = {crossover.a, crossover.b}
        found = [each for each in self._run.crossovers if {each.a, each.b} == pair and each.value is not None]
        return min(found, key=lambda each: abs((each.value or 0) - (crossover.value or 0)), default=None)

    def _beside(self, crossover: Crossover) -> tuple[_Case, _Case] | None:
        """The nearest points on both sides of a crossing where both strategies are timed."""
        axis, value = self._axes[0], crossover.value
        if value is None:
            return None
        both = [case for case in self._cases if {crossover.a, crossover.b} <= self._latencies(case).keys()]
        below = [case for case in both if case.point.at[axis] <= value]
        above = [case for case in both if case.point.at[axis] > value]
        return (below[-1], above[0]) if below and above else None

    def _flat(self) -> dict[str, float]:
        """Lines that a swept option does not concern, with their latency: measured at one value, it holds at all."""
        return {
            line.slug: item.latency.median_s
            for line in lines([case.point for case in self._cases], self._asked.axes)
            for _, _, item in line.points
            if line.flat and item.outcome == "ok" and item.latency is not None
        }

    def _varying(self, crossover: Crossover) -> tuple[str, ...]:
        """Those of a crossing that are measured at every point."""
        flat = self._flat()
        return tuple(line for line in (crossover.a, crossover.b) if line not in flat)

    def _latencies(self, case: _Case) -> dict[str, float]:
        return {**self._flat(), **_latencies(case.point)}

    # --- what is known -----------------------------------------------------------------------------------------------

    def _make_cases(self, taken: Sequence[Point]) -> list[_Case]:
        known = {key(point.at): point for point in taken}
        points = {key(at): Point(at=at) for at in self._asked.points()}
        for where, reason in self._plan.skipped.items():
            points[where] = replace(points[where], status="skipped", reason=reason)
        cases = {where: _Case(point) for where, point in points.items()}
        for where, point in known.items():
            lines = () if where in points else tuple(item.strategy for item in point.measurements)
            cases[where] = _Case(point, lines, taken=point)
        return [case for _, case in sorted(cases.items(), key=lambda item: [value for _, value in item[0]])]

    def _waiting(self) -> list[_Case]:
        return [case for case in self._cases if case.point.status in ("waiting", "running")]

    def _visit_of(self, case: _Case) -> Visit:
        return case.visit or self._new_visit(case)

    def _new_visit(self, case: _Case) -> Visit:
        asked = self._asked.comparison(case.point.at)
        if case.lines:
            asked = changed(asked, strategies=tuple(self._slug(case, line) for line in case.lines))
        case.visit = Visit(
            self._run.id,
            asked,
            self._launcher,
            functools.partial(self._take, case),
            self._dialogues,
            self._settings,
        )
        return case.visit

    def _take(self, case: _Case, view: View) -> None:
        """A visit publishes: its results are the point's."""
        if view.version != case.version:
            case.version = view.version
            names = {slug: line for line, slug in self._asked.slugs(case.point.at).items()}
            case.point = sweep_analysis.settled(case.point, sweep_analysis.renamed(view.run, names))
            self._version += 1
        self._stages = {self._line(case, slug): stage for slug, stage in view.stages.items()}
        self._message = f"{self._where(case.point)}: {view.message}"
        self._publish(self.view())

    def _analyse(self) -> None:
        self._run = sweep_analysis.analyse(replace(self._current(), warnings=self._warnings()))
        for case, point in zip(self._cases, self._run.points, strict=True):
            case.point = point
        self._version += 1
        self._publish(self.view())

    def _current(self) -> Run:
        return replace(self._run, points=[case.point for case in self._cases])

    def _warnings(self) -> list[Warning]:
        """Those of the sweep and of its points, once per code."""
        every = [*self._run.warnings, *(warning for case in self._cases for warning in case.point.warnings)]
        return list({warning.code: warning for warning in reversed(every)}.values())[::-1]

    def _lines(self, case: _Case) -> tuple[str, ...]:
        taking_part = self._asked.comparison(case.point.at).strategies
        return case.lines or tuple(
            line for line, slug in self._asked.slugs(case.point.at).items() if slug in taking_part
        )

    def _slug(self, case: _Case, line: str) -> str:
        return self._asked.slugs(case.point.at)[line]

    def _line(self, case: _Case, slug: str) -> str:
        return next(line for line, each in self._asked.slugs(case.point.at).items() if each == slug)

    def _where(self, point: Point) -> str:
        return ", ".join(f"{name}={value}" for name, value in point.at.items())

    def _left_s(self) -> float:
        assert self._started_s is not None
        return self._started_s + self.request.budget_s - time.monotonic()

    def _environment(self) -> dict[str, Any]:
        return environment.collect(
            start_method=self._launcher.start_method,
            threads=self.request.threads,
            tensorflow=self._launcher.state().details or {},
            load_window_s=_LOAD_WINDOW_S,
        )


def _latencies(point: Point) -> dict[str, float]:
    """Of those that are right, seconds of a call."""
    return {
        item.strategy: item.latency.median_s
        for item in point.measurements
        if item.outcome == "ok" and item.latency is not None
    }


def _lead(point: Point) -> float | None:
    """By which factor the leader is faster than the first that does not tie with it; None where all do."""
    latencies = _latencies(point)
    own = [latencies[slug] for slug in point.ranking[0]] if point.ranking else []
    others = [latencies[group[0]] for group in point.ranking[1:]]
    return min(others) / min(own) if own and others else None


def _fewest(point: Point, lines: Iterable[str]) -> int:
    """Processes of the line that has the fewest at a point."""
    return min(len(item.replicas) for item in point.measurements if item.strategy in lines)


def _between(low: int, high: int, least: float, most: float) -> int | None:
    """A whole number strictly between two points, at the geometric middle of a crossing's interval."""
    if high - low < 2:
        return None
    middle = (max(low, least, 1e-9) * max(min(high, most), 1e-9)) ** 0.5
    return min(max(round(middle), low + 1), high - 1)
