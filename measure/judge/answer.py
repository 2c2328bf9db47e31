"""The answer of a comparison in five parts: its case, what to take, ahead of what, at what cost, and what would change
it. Pure functions of a run; their sentences are plain text.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from measure.judge import intervals, modes, payoff
from measure.judge.levels import shown_levels
from measure.judge.verdict import TELLING, apart, counted, unmeasured, within
from measure.run import text
from measure.run.request import RequestError, again, case_of
from measure.run.run import Axis, Measurement, Request, Run
from workloads.case import Case

Word = Literal["clear", "tie", "cannot tell", "no choice", "nothing"]
Role = Literal["the next", "the baseline"]
# Of the shapes of a case so many are named.
_MOST_SHAPES = 2
# Peaks that differ by less than this share are alike.
_ALIKE = 0.01
# The time budget with which those that may be the fastest are measured once more, by themselves.
_SETTLING_S = 60.0
# Longer scripts are not compared, since a page waits for it.
_MOST_LINES = 1_500
_MODES = {"eager": "In eager code", "graph": "In a graph", "xla": "With XLA"}


# --- what was measured -----------------------------------------------------------------------------------------------


def heading(run: Run) -> str:
    """The case of a comparison or a sweep: ``image_sqrt · 100×64×64×3 · float32 · CPU:0``; how many claims a run has
    tried."""
    if run.kind == "claims":
        count = len(run.claims or [])
        return "1 claim" if count == 1 else f"{count} claims"
    return asked_case(run.request, run.axes)


def asked_case(request: Request, axes: Sequence[Axis] = ()) -> str:
    """The case that is asked for, in the words of `heading`; ``axes`` are what is swept."""
    asked = _parsed(request)
    swept = [axis.name for axis in axes]
    sizes = [f"{axis.name} {min(axis.values):,} to {max(axis.values):,}" for axis in axes]
    if swept or asked is None:
        sizes += [f"{name} {value:,}" for name, value in request.size.items() if name not in swept]
    else:
        sizes = [_shapes(case_of(asked))]
    usual = case_of(asked).workload.default_options() if asked else {}
    chosen = [f"{name} {value}" for name, value in request.workload_options.items() if value != usual.get(name)]
    if request.memory_limit_mib is not None:
        chosen.append(f"limit {request.memory_limit_mib:,} MiB")
    if request.threads is not None:
        chosen.append(f"{request.threads} thread{'s' * (request.threads != 1)}")
    if request.allocator == "default":
        chosen.append("default allocator")
    return " · ".join([request.title, *sizes, request.dtype, *chosen, request.device])


def _shapes(case: Case) -> str:
    leaves = case.leaves(case.workload.element_input)
    shapes = list(dict.fromkeys("×".join(map(str, (case.batch, *leaf.sides))) for leaf in leaves))
    return " and ".join(shapes[:_MOST_SHAPES]) + " …" * (len(shapes) > _MOST_SHAPES)


def _parsed(request: Request, strategies: Sequence[str] = ("all",)) -> Request | None:
    """The request of a record, for these strategies; None where it asks for what is not here."""
    try:
        return again(request, strategies=list(strategies))
    except RequestError:
        return None


# --- what to take ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Take:
    """The ``strategy`` to take, None where there is none, and how sure that is: ``word`` with its ``reason``.

    ``again``: the strategies that a run of ``budget_s`` seconds would decide between; empty where more time would not.
    """

    strategy: str | None
    word: Word
    reason: str
    again: tuple[str, ...] = ()
    budget_s: float = 0.0


def take(run: Run) -> Take:
    """The strategy to take: the fastest, and of those that tie the one that needs the least memory."""
    if not run.ranking:
        return Take(None, "nothing", "no strategy was timed that computes the right values")
    leaders, missing = run.ranking[0], unmeasured(run)
    first = leaders[0]
    if missing:
        asked = run.request.strategies
        were = "was" if len(missing) == 1 else "were"
        reason = f"{len(missing)} of {len(asked)} {were} not timed, and may be faster"
        return Take(first, "cannot tell", reason, *_longer(run, asked))
    if len(leaders) > 1:
        return _of_tie(run, leaders)
    if len(run.ranking) == 1:
        alone = len(run.request.strategies) == 1
        return Take(first, "no choice", "no other was asked for" if alone else "no other has worked")
    following = run.ranking[1][0]
    ratio = _ratio(run, following, first)
    return Take(first, "clear", f"{text.ahead(ratio.ratio)} ahead of the next" if ratio else "ahead of all others")


def _of_tie(run: Run, leaders: list[str]) -> Take:
    measurements = [run.measurement(slug) for slug in leaders]
    share = apart(run, measurements, shown_levels(run))
    if share is None or share > TELLING:
        single = any(sum(bool(replica.samples_s) for replica in item.replicas) < 2 for item in measurements)
        why = "a single process is too few" if single else "processes of one differ by more than they do"
        if run.control is not None:
            why = f"this run cannot tell differences under {text.percent(run.control.resolution)}"
        reason = f"{counted(len(leaders)).lower()} may be the fastest, as {why}"
        return Take(leaders[0], "cannot tell", reason, *_longer(run, leaders))
    peaks = [item.memory.peak_bytes for item in measurements if item.memory is not None]
    differ = len(peaks) == len(leaders) and min(peaks) < (1 - _ALIKE) * max(peaks)
    chosen = "taken for its memory" if differ else "all with the same memory"
    reason = f"{counted(len(leaders)).lower()} within {within(share)}, {chosen}"
    return Take(leaders[0], "tie", reason, *_longer(run, leaders))


def _longer(run: Run, slugs: Sequence[str]) -> tuple[tuple[str, ...], float]:
    """Strategies, and the budget in seconds of a run that is to tell them apart; nothing where this one had it."""
    asked = _parsed(run.request, slugs)
    return (tuple(asked.strategies), _SETTLING_S) if asked and run.request.budget_s < _SETTLING_S else ((), 0.0)


# --- ahead of what ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Against:
    """A strategy that others would take: latency of the ``strategy`` over that of the one to take, with its interval.
    ``role``: why it stands here."""

    strategy: str
    role: Role
    ratio: float
    low: float
    high: float


def against(run: Run, baseline: str | None) -> list[Against]:
    """The runner-up and the ``baseline``, as far as they are not the strategy to take."""
    if not run.ranking:
        return []
    (first, *tied), *behind = run.ranking
    following = behind[0][0] if behind else tied[0] if tied else None
    roles: dict[str | None, Role] = {baseline: "the baseline", following: "the next"}
    return [
        Against(slug, role, ratio.ratio, ratio.low, ratio.high)
        for slug, role in reversed(roles.items())
        if slug is not None and slug != first and (ratio := _ratio(run, slug, first)) is not None
    ]


def _ratio(run: Run, slower: str, faster: str) -> intervals.Ratio | None:
    levels = shown_levels(run)
    if not {slower, faster} <= levels.keys():
        return None
    return intervals.ratio(levels[slower], levels[faster], run.analysis.confidence)


# --- at what cost ----------------------------------------------------------------------------------------------------


def costs(run: Run, baseline: str | None) -> list[str]:
    """Sentences on memory, first calls and code of the strategy to take."""
    if not run.ranking:
        return []
    first = run.measurement(run.ranking[0][0])
    usual = None if baseline in (None, first.strategy) else run.measurement(str(baseline))
    return list(filter(None, (_memory(run, first, usual), _first_calls(run, first), _lines(first, usual))))


def _memory(run: Run, first: Measurement, usual: Measurement | None) -> str:
    if first.memory is None:
        return ""
    own = first.memory.peak_bytes
    ranked = _ranked(run)
    least = min((item for item in ranked if item.memory), key=_peak)
    sentence = f"Memory: {text.size(own)}"
    if _peak(least) >= (1 - _ALIKE) * own:
        sentence += ", no other needs less" if len(ranked) > 1 else ""
    else:
        sentence += f"; the least is {text.size(_peak(least))}, {least.strategy}"
    if usual is not None and usual.memory is not None and usual.strategy != least.strategy:
        sentence += f"; {usual.strategy} needs {text.size(_peak(usual))}"
    return f"{sentence}."


def _peak(item: Measurement) -> int:
    return item.memory.peak_bytes if item.memory else 0


def _first_calls(run: Run, first: Measurement) -> str:
    table = payoff.table(run)
    cells = dict(zip(table.compiled, table.cells, strict=True)).get(first.strategy, ())
    later = [pair for pair in cells if pair.pays_off == "calls" and pair.calls is not None]
    if not later:
        return f"First call: {text.seconds(first.first_call_s)}." if first.first_call_s else ""
    longest = max(later, key=lambda pair: pair.calls or 0.0)
    started = f"First call: {text.seconds(first.first_call_s)}; " if first.first_call_s else ""
    return f"{started}in total it is cheaper than {longest.against} after {payoff.words(longest)} calls."


def _lines(first: Measurement, usual: Measurement | None) -> str:
    if usual is None or first.code is None or usual.code is None:
        return ""
    own, other = (_body(item.code.source) for item in (first, usual) if item.code)
    if max(len(own), len(other)) > _MOST_LINES:
        return ""
    steps = difflib.SequenceMatcher(None, other, own).get_opcodes()
    changed = sum(end - start for kind, _, _, start, end in steps if kind != "equal")
    return f"Code: {changed} {'line differs' if changed == 1 else 'lines differ'} from {usual.strategy}."


def _body(source: str) -> list[str]:
    """The lines of a script after its docstring, which names the strategy."""
    return source.rpartition('"""\n')[2].splitlines()


# --- what would change it --------------------------------------------------------------------------------------------


def changes(run: Run) -> list[str]:
    """Sentences on what else would be taken in another mode, and for the least memory."""
    if not run.ranking:
        return []
    first, *others = _ranked(run)
    sentences = []
    for mode, words in _MODES.items():
        best = next((item for item in others if item.mode == mode), None)
        if mode != first.mode and best is not None:
            why = modes.reason(run, first, best)
            sentences.append(f"{words}: {best.strategy}, {_latency(best)}{f' ({why})' if why else ''}.")
    thriftiest = min(others, key=_peak, default=first)
    if 0 < _peak(thriftiest) < (1 - _ALIKE) * _peak(first):
        sentences.append(
            f"For the least memory: {thriftiest.strategy}, {text.size(_peak(thriftiest))} and {_latency(thriftiest)}."
        )
    return sentences


def _ranked(run: Run) -> list[Measurement]:
    """The measurements of all strategies with a rank, fastest first."""
    measured = {item.strategy: item for item in run.measurements}
    return [measured[slug] for group in run.ranking for slug in group if slug in measured]


def _latency(item: Measurement) -> str:
    return text.seconds(item.latency.median_s if item.latency else None)
