"""The conclusions of the benchmarks from what they measure: pure functions, with numbers worked by hand."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure.model.run import Control, Latency, Measurement, Point, Replica, RequestRecord, Run
from measure.model.run_file import decode
from measure.runner import Snapshot
from tests import synthetic
from tests.benchmarks import (
    against_others,
    bare_functions,
    common,
    cost,
    drift,
    first_verdict,
    others,
    repeatability,
    sweeps,
)
from tests.benchmarks.against_others import AGAIN, Paired
from tests.benchmarks.common import Figure, Problem
from tests.benchmarks.cost import Cost, Verdict
from tests.benchmarks.repeatability import Keeper, Rerun


def measured(slug: str, median_s: float = 1.0, replicas: Sequence[Replica] = ()) -> Measurement:
    mapper, _, mode = slug.partition(".")
    latency = Latency(median_s=median_s, low_s=median_s, high_s=median_s)
    return Measurement(strategy=slug, mapper=mapper, mode=mode, outcome="ok", latency=latency, replicas=list(replicas))


def made(items: Sequence[Measurement], ranking: list[list[str]], control: Control | None = None) -> Run:
    request = RequestRecord(
        workload="image_sqrt",
        size={"batch": 1},
        dtype="float32",
        device="CPU:0",
        strategies=[item.strategy for item in items],
        budget_s=1.0,
    )
    return Run(
        id="0" * 24, created="2026-01-01T00:00:00Z", request=request, measurements=list(items), ranking=ranking,
        control=control,
    )  # fmt: skip


def control(low: float, high: float, resolution: float = 0.05) -> Control:
    return Control(strategy="a.eager", ratio=1.0, low=low, high=high, resolution=resolution)


def verdicts(figures: Sequence[Figure]) -> dict[str, str]:
    return {figure.name: figure.verdict() for figure in figures}


def values(figures: Sequence[Figure]) -> dict[str, float]:
    return {figure.name: figure.value for figure in figures}


# --- figures and their limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "at_least", "said"),
    [
        (1.0, False, "reaches the aim"),
        (1.5, False, "within the limit"),
        (2.0, False, "within the limit"),
        (2.1, False, "OUTSIDE THE LIMIT"),
        (2.0, True, "within the limit"),
        (1.9, True, "OUTSIDE THE LIMIT"),
    ],
)
def test_a_figure_is_held_to_its_limit(value: float, at_least: bool, said: str) -> None:
    assert Figure("x", value, 2.0, 3.0 if at_least else 1.0, at_least=at_least).verdict() == said


def test_a_figure_without_a_limit_is_held_to_nothing() -> None:
    assert Figure("x", 9.0).verdict() == ""


# --- against others --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (5, 0.0, math.inf),  # all on one side of the median: 2 / 2⁵ = 6 %
        (6, 1, 6),  # 2 / 2⁶ = 3.1 %
        (8, 1, 8),  # with one left out on either side: 2 · (1 + 8) / 2⁸ = 7.0 %
        (9, 2, 8),  # 2 · (1 + 9) / 2⁹ = 3.9 %
        (12, 3, 10),  # 2 · (1 + 12 + 66) / 2¹² = 3.9 %
    ],
)
def test_the_interval_of_a_median_lies_between_two_of_the_values(count: int, low: float, high: float) -> None:
    assert against_others.median_interval(list(range(count, 0, -1))) == (low, high)


def test_ratios_are_taken_within_turns() -> None:
    # The machine is twice and thrice as slow in two of the turns; the tools differ by a tenth in every one.
    assert against_others.paired([1.1, 2.2, 3.3], [1.0, 2.0, 3.0]).ratio == pytest.approx(1.1)
    # Medians over turns have a ratio of 1.5.
    assert against_others.paired([2.0, 3.0, 8.0], [1.0, 2.0, 2.0]) == Paired(2.0, 0.0, math.inf)


SLOTS = {"Mapbench": [4.0, 12.0], "timeit": [1.0, 4.0], "pyperf": [5.0, 3.0], AGAIN: [4.0, 9.0]}


def test_timeit_has_two_processes_in_a_turn() -> None:
    assert against_others.of_tool(SLOTS, "timeit") == [2.0, 6.0]
    assert against_others.of_tool(SLOTS, "pyperf") == [5.0, 3.0]


def test_beside_a_load_each_tool_is_relative_to_its_own_figure_of_the_same_turn() -> None:
    other = {"Mapbench": [2.0, 3.0], "timeit": [1.0, 2.0], "pyperf": [1.0, 6.0], AGAIN: [8.0, 3.0]}
    assert against_others.relative_to({"a": SLOTS, "b": other}, "b") == {
        "a": {"Mapbench": [2.0, 4.0], "timeit": [1.0, 2.0], "pyperf": [5.0, 0.5], AGAIN: [0.5, 3.0]}
    }


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([Paired(1.02, 0.9, 1.2), Paired(0.975, 0.9, 1.1)], "within 3 %"),
        ([Paired(1.00, 0.9, 1.2), Paired(0.960, 0.9, 1.1)], "within 5 %"),
        ([Paired(1.06, 1.04, 1.2), Paired(1.0, 0.9, 1.1)], "OUTSIDE 5 %, but perhaps by chance"),
        ([Paired(1.06, 1.051, 1.2), Paired(1.0, 0.9, 1.1)], "OUTSIDE 5 %"),
        ([Paired(0.94, 0.92, 0.949), Paired(1.0, 0.9, 1.1)], "OUTSIDE 5 %"),
    ],
)
def test_the_farther_of_two_medians_is_what_counts(pairs: list[Paired], said: str) -> None:
    assert against_others.verdict(pairs) == said


def test_a_row_has_medians_ratios_and_the_noise_of_one_tool_and_only_the_judged_are_counted() -> None:
    far = {"Mapbench": [3.0] * 6, "timeit": [2.0] * 6, "pyperf": [2.0] * 6, AGAIN: [2.0] * 6}
    near = {
        "Mapbench": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "timeit": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "pyperf": [1.04 * turn for turn in range(1, 7)],
        AGAIN: [1.0, 2.0, 3.0, 4.0, 5.0, 12.0],
    }
    lines = against_others.rows({"far": far, "near": near}, ["near"])
    shown = against_others.table("idle", lines, lambda value: f"{value:.2f} s").splitlines()
    assert shown[0].startswith("| idle | Mapbench | pyperf | timeit | Mapbench / pyperf | Mapbench / timeit |")
    assert shown[2] == (
        "| far | 3.00 s | 2.00 s | 2.00 s | 1.500 [1.50, 1.50] | 1.500 [1.50, 1.50] | 1.000 [1.00, 1.00] | not judged |"
    )
    # √(6 · 12) is what timeit says in the last turn.
    assert shown[3].startswith("| near | 3.50 s | 3.64 s | 3.50 s | 0.962 [0.96, 0.96] | 1.000 [0.71, 1.00] |")
    assert shown[3].endswith("| 1.000 [0.50, 1.00] | within 5 % |")
    assert against_others.summary(lines) == "Of 1 rows that are judged, 1 within 5 % and 0 within 3 %"


def test_every_length_of_call_has_a_compiled_function_and_the_reference_is_one_of_them() -> None:
    compiled = {each.name for each in against_others.FUNCTIONS if each.compiled}
    assert {name.rpartition(",")[0] for name in compiled} == {"30 µs", "0.1 ms", "0.2 ms", "0.4 ms", "1 ms", "50 ms"}
    assert against_others.REFERENCE in compiled


# --- other tools -----------------------------------------------------------------------------------------------------


def test_the_interval_of_pyperf_rests_on_the_means_of_processes() -> None:
    # Means 1.0 and 1.2; t of one degree is 12.7062, and s / √2 = 0.1: 12.7062 · 0.1 / 1.1.
    assert others.relative_half_width([[0.9, 1.1], [1.2, 1.2]]) == pytest.approx(1.15511, rel=1e-5)
    assert others.relative_half_width([[1.0, 1.2]]) == math.inf


def test_calibration_and_warm_ups_of_pyperf_are_no_values() -> None:
    calibration = {"metadata": {"loops": 4}, "warmups": [[1, 0.5]]}
    processes = [{"metadata": {"loops": 8}, "warmups": [[8, 9.0]], "values": [0.1, 0.2]}, {"values": [0.3]}]
    result = others.PyperfResult({"benchmarks": [{"runs": [calibration, *processes], "metadata": {"loops": 8}}]})
    assert result.values_s == [[0.1, 0.2], [0.3]]
    assert result.loops == 8


# --- the same again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("declared", "count", "p"), [(0, 60, 1.0), (1, 3, 1 - 0.95**3), (2, 2, 0.0025)])
def test_declared_differences_against_chance(declared: int, count: int, p: float) -> None:
    assert repeatability.above_chance(declared, count) == pytest.approx(p)


def test_seven_of_sixty_are_more_than_chance_and_six_are_not() -> None:
    found = {
        declared: verdicts(
            repeatability.same_figures(
                [repeatability.Pair("x", number < declared, 1.0, True, 0.1) for number in range(60)]
            )
        )["p of so many or more, were the rate 5 %"]
        for declared in (6, 7)
    }
    assert found == {6: "within the limit", 7: "OUTSIDE THE LIMIT"}


def test_a_strategy_with_itself() -> None:
    items = [measured("a.eager", 2.0), measured("a_again.eager", 3.0)]
    slugs = [item.strategy for item in items]
    same = repeatability.judge("x", made(items, [slugs], control(0.9, 1.1)))
    assert same == repeatability.Pair("x", False, 1.5, True, 0.05)
    other = repeatability.judge("x", made(items, [[slug] for slug in slugs], control(1.01, 1.1)))
    assert (other.different, other.control_holds) == (True, False)
    with pytest.raises(RuntimeError, match="a_again"):
        repeatability.judge("x", made(items, [slugs[:1]]))


def test_twins_that_are_not_known_are_left_out_and_count_as_endless_resolutions() -> None:
    pairs = [
        repeatability.Pair("x", False, 1.0, None, None),
        repeatability.Pair("x", False, 1.0, True, 0.02),
        repeatability.Pair("x", True, 1.3, False, 0.10),
        repeatability.Pair("x", False, 0.9, True, 0.04),
    ]
    found = values(repeatability.same_figures(pairs))
    assert found["declared differences (1 of 4)"] == 0.25
    assert found["intervals of the run's own twin that hold 1"] == pytest.approx(2 / 3)
    assert found["median resolution (1 not known)"] == pytest.approx(0.07)
    assert repeatability.same_rows(pairs) == [("x", 4, 1, "0.900 to 1.300")]


@pytest.mark.parametrize(
    ("resolutions", "row"),
    [
        ([0.02, 0.12, 0.04], ("w", "4.0 %")),
        ([0.02, None, 0.04], ("w (1 not known)", "4.0 %")),
        ([None, None, 0.04], ("w (2 not known)", "not known")),
    ],
)
def test_the_median_resolution(resolutions: list[float | None], row: tuple[str, str]) -> None:
    assert repeatability.median_resolution("w", resolutions).row()[:2] == row


def groups(*named: str) -> list[frozenset[str]]:
    return [frozenset(group) for group in named]


def test_agreement_of_leading_groups() -> None:
    # Pairs: ab–ab, ab–bc and ab–bc overlap; c meets only bc; a run that names nobody meets none.
    found = repeatability.agreement(groups("ab", "ab", "bc", "c", ""))
    assert found.group == frozenset("ab")
    assert (found.equal, found.overlapping, found.pairs) == (0.4, 0.6, 0.4)
    assert repeatability.agreement(groups("")).overlapping == 0.0


def test_reruns_are_held_to_overlapping_in_pairs_and_vague_ones_show() -> None:
    # Each half overlaps «everybody», and the halves do not overlap each other.
    named = groups("abcd", "abcd", "ab", "cd")
    found = repeatability.rerun_figures("w", [Rerun(group, 0.1 * n) for n, group in enumerate(named)])
    assert verdicts(found) == {
        "w: same leading group": "",
        "w: overlapping it": "within the limit",
        "w: pairs of runs that overlap": "OUTSIDE THE LIMIT",
        "w: median size of the leading group": "",
        "w: median resolution": "",
    }
    assert values(found)["w: pairs of runs that overlap"] == pytest.approx(5 / 6)
    assert values(found)["w: median size of the leading group"] == 3
    assert values(found)["w: median resolution"] == pytest.approx(0.15)


def test_runs_are_kept_where_a_folder_is_named(tmp_path: Path) -> None:
    run = made([measured("a.eager")], [["a.eager"]])
    Keeper(None).keep("x", run)
    Keeper(tmp_path / "new" / "folder").keep("rerun_01", run)
    (kept,) = tmp_path.rglob("*.*")
    assert kept.name == "rerun_01.json"
    assert decode(kept.read_bytes()) == run


# --- costs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("processes", "half_width", "needed"),
    [
        # t of 13 degrees is 2.1604, of 47 2.0117 and of 48 2.0106: 6 % · √(14 / n) · t / 2.1604 is 3.017 % at 48
        # processes and 2.985 % at 49.
        (14, 0.06, 49),
        (14, 0.0301, 15),
        # With few processes t falls quickly: of 4 degrees 2.7764, of 5 2.5706, which makes 3.1 % into 2.62 %.
        (5, 0.031, 6),
    ],
)
def test_processes_that_an_interval_needs(processes: int, half_width: float, needed: int) -> None:
    assert cost.processes_needed(processes, half_width, 0.03) == needed


def test_a_strategy_that_was_given_up_costs_what_it_would_have_taken() -> None:
    capped, reached = Cost("a.eager", 70.0, 14, 0.06), Cost("b.eager", 30.0, 5, 0.02)
    assert (capped.reached, capped.needed, capped.whole_s) == (False, 49, 245.0)
    assert (reached.reached, reached.needed, reached.whole_s) == (True, 5, 30.0)


def test_strategies_that_were_not_measured_cost_the_mean_of_the_others() -> None:
    assert cost.pyperf_total_s([10.0, 20.0], 12) == 180.0
    assert cost.spread_out(["a", "b", "c", "d", "e"], 2) == ["a", "c"]
    assert cost.spread_out(["a", "b"], 4) == ["a", "b"]


def test_the_slower_run_is_held_against_what_pyperf_took_at_least() -> None:
    # 6 % of 5 processes is 2.92 % with 13: √(5 / 13) · 2.179 / 2.776, Student's t of 12 and of 4 degrees.
    costs = [Cost("a.eager", 100.0, 5, 0.06)]
    found = cost.cost_figures([Verdict("", 15.0, 10.0), Verdict("", 40.0, 70.0)], costs, 2)
    shown = {figure.name: (pytest.approx(figure.value), figure.verdict()) for figure in found}
    assert shown == {
        "pyperf, 2 strategies (1 measured): as far as it went, at least": (200.0, ""),
        "pyperf, 2 strategies (1 measured): extrapolated to ±3%": (520.0, ""),
        "Mapbench before it, from nothing to the verdict": (15.0, ""),
        "Mapbench before it, host warm, to the verdict": (10.0, ""),
        "Mapbench after it, from nothing to the verdict": (40.0, ""),
        "Mapbench after it, host warm, to the verdict": (70.0, ""),
        "slower Mapbench from nothing / pyperf as far as it went": (0.2, "within the limit"),
        "slower Mapbench, host warm / pyperf as far as it went": (0.35, "OUTSIDE THE LIMIT"),
        "slower Mapbench from nothing / pyperf extrapolated": (40 / 520, ""),
        "slower Mapbench, host warm / pyperf extrapolated": (70 / 520, ""),
    }


# --- the first verdict -----------------------------------------------------------------------------------------------


def test_a_check_is_held_to_its_limit_where_the_host_is_ready() -> None:
    found = first_verdict.check_figures(3.5, {"a": [2.0, 0.5, 1.0], "b": [4.0, 0.25, 0.5]})
    shown = {figure.name: (figure.value, figure.verdict()) for figure in found}
    assert shown == {
        "a check that waits for TensorFlow's import": (3.5, ""),
        "host ready: the first check": (2.0, "within the limit"),
        "host ready: a, median of 3": (1.0, ""),
        "host ready: b, median of 3": (0.5, ""),
        "host ready: median of all 6 checks": (0.75, "within the limit"),
        "host ready: the longest check": (4.0, "OUTSIDE THE LIMIT"),
    }


# --- bare functions --------------------------------------------------------------------------------------------------


def test_leaders_are_the_same_where_two_runs_have_one_in_common() -> None:
    tie = made([measured("a.eager", 1.0), measured("b.eager", 1.1)], [["a.eager", "b.eager"]], control(0.9, 1.1, 0.1))
    a = made([measured("a.eager", 1.0), measured("b.eager", 1.4)], [["a.eager"], ["b.eager"]], control(0.9, 1.1, 0.2))
    b = made([measured("a.eager", 1.5), measured("b.eager", 1.0)], [["b.eager"], ["a.eager"]])
    pairs = [
        bare_functions.Pair("x", tie, a),
        bare_functions.Pair("x", a, b),
        bare_functions.Pair("variable_shape", a, b),
        bare_functions.Pair("x", a, None, "no elements"),
    ]
    # b is 1.4 times behind in a's run, and a 1.5 times in b's.
    assert [pair.verdict for pair in pairs] == [
        "same",
        "others, 1.40 × apart, 20 % resolved",
        "others: the file pads its results, which no mapper of the function does",
        "refused: no elements",
    ]
    memory = synthetic.run().measurements[0].memory
    untimed = replace(measured("b.eager"), latency=None, outcome="not_run", memory=memory)
    assert bare_functions.is_cut_short(made([measured("a.eager"), untimed], [["a.eager"]]))
    assert not bare_functions.is_cut_short(
        made([measured("a.eager"), replace(untimed, outcome="failed")], [["a.eager"]])
    )
    assert bare_functions.rows(pairs)[0] == ("x", "a.eager = b.eager", "a.eager", "same")
    assert bare_functions.summary(pairs) == (
        "1 of 4 workloads have the same leaders as bare functions, 1 have others for a known reason, and 2 have others"
    )


# --- drift -----------------------------------------------------------------------------------------------------------

PAIR = drift.Pair(Problem("image_sqrt", {}), "a.eager", "b.eager")


@pytest.mark.parametrize(
    ("ranking", "said"),
    [
        ([["a.eager"], ["b.eager"]], drift.RIGHT),
        ([["b.eager"], ["a.eager"]], drift.WRONG),
        ([["a.eager", "b.eager"]], drift.TIE),
        ([], drift.TIE),
    ],
)
def test_what_a_ranking_says_of_a_pair(ranking: list[list[str]], said: str) -> None:
    assert drift.order(PAIR, ranking) == said


def test_a_load_begins_midway_where_neither_part_is_small() -> None:
    assert [drift.is_midway(share) for share in (0.2, 0.25, 0.5, 0.75, 0.8, 1.0)] == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]


def test_the_load_begins_once_and_the_visits_before_it_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr(drift.common, "busy", lambda on: contextlib.nullcontext(begun.append(list(on))))
    monkeypatch.setattr(drift.common, "cores", lambda: [0, 1])

    def snapshot(visits: int, state: str = "running") -> Snapshot:
        """So many processes of either strategy, and one that has not been sampled yet."""
        processes = [
            Replica(id=number, calls_per_sample=1, rounds=[number] * 3, samples_s=[1.0] * 3) for number in range(visits)
        ]
        unsampled = Replica(id=visits, calls_per_sample=1)
        items = [measured("a.eager", replicas=processes), measured("b.eager", replicas=[*processes, unsampled])]
        return Snapshot(made(items, []), state)  # type: ignore[arg-type]

    with contextlib.ExitStack() as stack:
        load = drift.LoadMidway(stack, 11)
        load.look(0.0, snapshot(5))
        assert (load.visits_before, begun) == (None, []), "there were 10 visits"
        load.look(1.0, snapshot(6))
        load.look(2.0, snapshot(7))
        assert (load.visits_before, begun) == (12, [[0, 1]])
        late = drift.LoadMidway(stack, 11)
        late.look(3.0, snapshot(9, "finished"))
        assert late.visits_before is None


def test_one_after_the_other_has_to_go_wrong_and_the_load_to_begin_midway() -> None:
    right, wrong, none = drift.RIGHT, drift.WRONG, drift.NO_LOAD

    def judged(rounds: list[str], slower_first: list[str]) -> list[str]:
        said = {drift.MAPBENCH: rounds, drift.SLOWER_FIRST: slower_first, drift.FASTER_FIRST: [wrong]}
        return [figure.verdict() for figure in drift.figures(said)]

    held, out = "within the limit", "OUTSIDE THE LIMIT"
    assert judged([right, right], [wrong, wrong]) == [held, held, held]
    assert judged([right, none], [wrong, wrong]) == [out, out, held]
    assert judged([right, drift.TIE], [wrong, right]) == [held, out, out]


def test_the_scatter_between_repeats_of_a_sweep_is_of_what_all_of_them_have_timed() -> None:
    def swept(*latencies_s: float) -> Run:
        items = [measured(slug, latency_s) for slug, latency_s in zip("abc", latencies_s, strict=False)]
        return replace(
            made(items, []), kind="sweep", measurements=[], points=[Point(at={"batch": 1}, measurements=items)]
        )

    # Logarithms: of a 0 and 0.2, of b 0 and 0.4, of c only one.
    found = sweeps.scatter([swept(1.0, 1.0, 1.0), swept(math.exp(0.2), math.exp(0.4))])
    assert found == pytest.approx(0.3 / math.sqrt(2))


def test_tables_are_as_wide_as_they_need_to_be() -> None:
    assert common.table(("a", "b"), [("long", 1)]) == "a     b\n----  -\nlong  1"
