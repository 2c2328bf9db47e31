"""Warnings of what the samples show: what triggers each, what is just below and does not, and what it says to do."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge import advice, analysis, rules
from measure.model.run import Control, Error, Run, Status, Warning
from measure.statistics.intervals import level, spread_of
from measure.statistics.levels import Drift, Levels, levels_of
from tests.samples import measurement, run_of
from tests.simulation import Model, simulate

# Processes of a strategy that is decided at the first look, and of one that is clearly slower; samples of each.
CONTENDER, SAMPLES = 6, 30


def levels(
    logs: Mapping[str, Sequence[float]] | None = None,
    typical: Mapping[str, float] | None = None,
    drift: Drift | None = None,
) -> Levels:
    """What is known of a run. ``logs``: one logarithm a process; ``typical``: where it is another than their mean."""
    arrays = {slug: np.array(values) for slug, values in (logs or {}).items()}
    spread = spread_of(list(arrays.values()))
    means = {slug: float(values.mean()) for slug, values in arrays.items()}
    by_slug = {slug: level(values, spread) for slug, values in arrays.items()}
    return Levels(by_slug, {**means, **(typical or {})}, arrays, spread, drift or Drift(0.0, 1.0))


def codes(run: Run, known: Levels | None = None) -> list[str]:
    return [warning.code for warning in rules.of_run(run, known or levels())]


@pytest.mark.parametrize(("cores", "expected"), [(0.21, ["busy_before"]), (0.20, []), (None, [])])
def test_others_at_work_before_the_run_are_named(cores: float | None, expected: list[str]) -> None:
    run = replace(run_of(), environment={"load_of_others_cores": cores})
    assert codes(run) == expected


@pytest.mark.parametrize(
    ("change", "p", "expected"),
    [
        (0.105, 0.009, ["drift"]),
        (0.095, 0.009, []),
        (-0.105, 0.009, ["drift"]),
        (-0.095, 0.009, []),
        (0.3, 0.011, []),
    ],
)
def test_a_machine_that_changes_its_pace_during_the_run_is_named_if_that_is_no_chance(
    change: float, p: float, expected: list[str]
) -> None:
    assert codes(run_of(), levels(drift=Drift(change, p))) == expected


def test_a_run_that_slows_down_throughout_says_so_and_one_that_does_not_says_nothing() -> None:
    latencies_s = {"a": 1e-3, "b": 1.3e-3, "c": 2e-3}

    def drifts(drift: float) -> int:
        count = 0
        for seed in range(20):
            seconds = simulate(latencies_s, Model(), seed).seconds
            result = simulate(latencies_s, Model(drift=drift, drift_s=seconds), seed)
            run = analysis.analyse(run_of(*result.measurements))
            count += "drift" in {warning.code for warning in run.warnings}
        return count

    assert drifts(0.3) >= 18
    assert drifts(0.0) <= 1


@pytest.mark.parametrize(("change", "words"), [(0.2, "became 20 % slower"), (-0.2, "became 20 % faster")])
def test_a_drift_is_said_with_what_holds_nonetheless(change: float, words: str) -> None:
    (warning,) = rules.of_run(run_of(), levels(drift=Drift(change, 0.0)))
    assert words in warning.message
    assert "the leaders took turns, so their order holds, but the latencies may be off" in warning.message


TIE, LEAD = [["a", "b"], ["c"]], [["a"], ["b", "c"]]


@pytest.mark.parametrize(
    ("resolution", "ranking", "expected"),
    [(0.101, TIE, ["coarse_resolution"]), (0.10, TIE, []), (0.3, LEAD, []), (0.3, [], [])],
)
def test_a_run_that_cannot_tell_a_tenth_says_so_where_several_lead(
    resolution: float, ranking: list[list[str]], expected: list[str]
) -> None:
    control = Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=resolution)
    assert codes(replace(run_of(), control=control, ranking=ranking)) == expected


@pytest.mark.parametrize(("status", "longer"), [("budget", True), ("complete", False)])
def test_a_longer_budget_is_advised_only_where_the_budget_was_spent(status: Status, longer: bool) -> None:
    control = Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=0.2)
    (warning,) = rules.of_run(replace(run_of(), control=control, ranking=TIE, status=status), levels())
    assert ("longer time budget" in warning.message) == longer


ENDED = {"finished": "2026-01-01T00:00:09Z", "ranking": [["a"], ["b"]], "status": "budget"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["no_control"]),
        ({"ranking": [["a", "b"]]}, ["no_control"]),
        ({"ranking": [["a"]]}, []),
        ({"finished": None}, []),
        ({"control": Control(strategy="a", ratio=1.0, low=0.99, high=1.01, resolution=0.01)}, []),
    ],
)
def test_a_run_that_ended_without_its_control_says_that_its_resolution_is_not_known(
    changes: dict[str, Any], expected: list[str]
) -> None:
    assert codes(replace(run_of(), **{**ENDED, **changes})) == expected


@pytest.mark.parametrize(
    ("status", "twin_failed", "why"),
    [
        ("budget", False, "the time budget ended before the leader was measured twice. Small differences may be "
                          "chance; a longer one allows it"),
        ("cancelled", False, "it was cancelled before that."),
        ("interrupted", False, "it ended before that."),
        ("complete", True, "measuring a a second time failed."),
        ("complete", False, "a person stopped it before that."),
    ],
)  # fmt: skip
def test_why_there_is_no_control_is_said(status: str, twin_failed: bool, why: str) -> None:
    error = Error(type="Crash", message="it died") if twin_failed else None
    twin = replace(measurement("a#twin", [], twin_of="a"), error=error)
    run = replace(run_of(twin), **{**ENDED, "status": status})
    (warning,) = rules.of_run(run, levels_of(run.measurements))
    assert warning.message.startswith(f"this run's resolution was not measured: {why}")


TIED = [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("typical", "expected"),
    [
        ({}, []),
        ({"a": 0.5}, []),  # the other leader is faster by the median, too
        ({"a": 0.5, "b": 0.5}, ["typical_differs"]),
        ({"a": 0.35, "b": 0.35}, []),
        ({"wrong": -1.0}, []),  # has no rank
    ],
)
def test_a_strategy_behind_the_leaders_that_would_lead_by_the_median_is_named(
    typical: dict[str, float], expected: list[str]
) -> None:
    logs = {"a": [0.0] * 6, "b": [0.1] * 6, "c": [0.4] * 6, "wrong": [0.2] * 2}
    run = replace(run_of(), ranking=TIED)
    assert codes(run, levels(logs, typical)) == expected


def test_who_would_lead_by_the_median_is_said_with_where_to_look() -> None:
    logs = {"a": [0.0] * 6, "b": [0.1] * 6, "c": [0.4] * 6}
    (warning,) = rules.of_run(replace(run_of(), ranking=TIED), levels(logs, {"a": 0.6, "b": 0.6}))
    assert warning.message.startswith("by the median of all calls c would lead")
    assert "those of a, which is faster while nothing disturbs it; look at the samples of both" in warning.message


def test_calls_of_two_paces_lose_the_lead_by_the_median() -> None:
    """From samples: the leader's calls are slow half of the time."""
    paced = [[1.0] * 10 + [2.0] * 20] * 6
    items = [measurement("paced", paced), measurement("steady", [[1.3] * 30] * 6)]
    run = analysis.analyse(run_of(*items))
    assert run.ranking[0] == ["paced"]
    assert "typical_differs" in {warning.code for warning in run.warnings}
    assert [warning.code for warning in run.measurement("paced").warnings] == ["varies"]
    assert run.measurement("steady").warnings == []


# --- of a strategy -------------------------------------------------------------------------------------------------


def warnings_of(processes: Sequence[Sequence[float]]) -> list[Warning]:
    """The warnings about a strategy with these samples, one sequence per process, seconds."""
    item = measurement("a", [list(samples) for samples in processes])
    return rules.of_measurement(item, levels_of([item]))


def codes_of(processes: Sequence[Sequence[float]]) -> list[str]:
    return [warning.code for warning in warnings_of(processes)]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((), []),
        ((1,), ["few_rounds"]),
        ((2,), ["few_rounds"]),
        ((1, 1), ["few_rounds"]),
        ((3,), []),
        ((1,) * 3, []),
        ((SAMPLES,) * CONTENDER, []),
    ],
)
def test_a_latency_that_rests_on_few_samples_says_so(counts: Sequence[int], expected: list[str]) -> None:
    assert codes_of([[1.0] * count for count in counts]) == expected


def test_few_samples_are_counted_over_all_processes() -> None:
    (warning,) = warnings_of([[1.0], [1.0]])
    assert "rests on 2 samples," in warning.message
    (warning,) = warnings_of([[1.0]])
    assert "rests on one sample," in warning.message


@pytest.mark.parametrize(("slow", "expected"), [(1.26, ["varies"]), (1.24, []), (1.0, [])])
@pytest.mark.parametrize("processes", [1, 2, CONTENDER])
def test_calls_of_which_half_take_much_longer_than_the_headline_are_named(
    slow: float, expected: list[str], processes: int
) -> None:
    assert codes_of([[1.0] * 13 + [slow] * 17] * processes) == expected


def test_a_minority_of_slow_calls_is_nothing_to_warn_of() -> None:
    assert codes_of([[1.0] * 16 + [5.0] * 14] * CONTENDER) == []
    assert codes_of([[1.0] * 14 + [5.0] * 16] * CONTENDER) == ["varies"]


def test_calls_that_vary_are_told_with_what_to_do() -> None:
    (warning,) = warnings_of([[1.0] * 10 + [1.5] * 20] * CONTENDER)
    assert warning.message.startswith("half of its calls take more than 50 % longer than its latency says")
    assert warning.message.endswith("look at its samples")
    assert warning.values == {"beyond": pytest.approx(0.5)}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (1.31, ["processes_differ"]),
        (1.29, []),
        (1 / 1.31, ["processes_differ"]),
        (1 / 1.29, []),
        (2.0, ["processes_differ"]),
    ],
)
@pytest.mark.parametrize("others", [2, CONTENDER - 1])
def test_a_process_at_another_pace_is_named(others: int, times: float, expected: list[str]) -> None:
    assert codes_of([[1.0] * SAMPLES] * others + [[times] * SAMPLES]) == expected


def test_where_all_processes_differ_none_is_odd() -> None:
    assert codes_of([[pace] * SAMPLES for pace in (1.0, 1.2, 1.45, 1.7, 2.1)]) == []


def test_of_two_processes_that_differ_it_is_not_known_which_is_the_odd_one() -> None:
    assert codes_of([[1.0] * SAMPLES, [2.0] * SAMPLES]) == []


@pytest.mark.parametrize(("times", "words"), [(2.0, "2.00 × as slow"), (0.5, "2.00 × as fast")])
def test_a_process_at_another_pace_is_told_with_what_to_do(times: float, words: str) -> None:
    (warning,) = warnings_of([[1.0] * SAMPLES] * 2 + [[times] * SAMPLES] + [[1.0] * SAMPLES] * 2)
    assert f"one of its 5 processes is {words} as the others" in warning.message
    assert "measure again to see how often" in warning.message


def test_disturbed_samples_make_no_process_another() -> None:
    quiet, half = [1.0] * SAMPLES, [1.0] * 15 + [2.0] * 15
    assert codes_of([quiet] * 5 + [half]) == []
    assert codes_of([quiet] * 5 + [[1.0] * 5 + [2.0] * 25]) == ["processes_differ"]


@pytest.mark.parametrize("model", [Model(process=0.02, sample=0.03), Model(process=0.03, sample=0.02)])
@pytest.mark.parametrize("behind", [1.02, 1.5])
def test_ordinary_races_are_not_warned_about(model: Model, behind: float) -> None:
    """Twelve strategies, close and clear leaders, a disturbed sample now and then, and nothing else at work."""
    latencies_s = {f"s{number}": 1e-3 * behind**number for number in range(12)}
    runs = 25
    of_runs, of_strategies = [], []
    for seed in range(runs):
        run = replace(run_of(*simulate(latencies_s, model, seed).measurements), finished="2026-01-01T00:00:09Z")
        run = analysis.analyse(replace(run, status="complete"))
        of_runs += [warning.code for warning in run.warnings]
        of_strategies += [warning.code for item in run.measurements for warning in item.warnings]
    assert len(of_runs) <= 2, of_runs  # a coarse resolution is one in twenty where processes differ by 3 %
    assert len(of_strategies) <= 3, of_strategies  # a hundredth of the strategies


def test_the_values_of_derived_warnings_have_the_digits_that_every_machine_agrees_on() -> None:
    logs = [0.0, 0.0, math.sqrt(0.2)]
    item = measurement("a", [[math.exp(value)] * 5 for value in logs])
    run = analysis.analyse(run_of(item))
    drifted = rules.of_run(run_of(), levels(drift=Drift(math.sqrt(0.05), 0.0)))
    values = [run.measurements[0].warnings[0].values["times"], drifted[0].values["change"]]
    for value in values:
        assert value == float(f"{value:.10g}") != round(value, 6)


def test_derived_warnings_are_computed_anew_and_seen_ones_are_kept() -> None:
    seen = advice.not_saved("No space left on device")
    run = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[seen])
    once = analysis.analyse(run)
    assert [warning.code for warning in once.warnings] == ["not_saved", "busy_before"]
    assert analysis.analyse(once).warnings == once.warnings


def test_codes_that_only_earlier_methods_gave_are_taken_off_when_a_run_is_analysed_anew() -> None:
    old = [Warning(code=code, message="seen by an earlier method") for code in ("halves_differ", "multimodal")]
    kept = Warning(code="retrace", message="every call traces a function anew")
    item = replace(measurement("a", [[1.0] * 5] * 3), warnings=[*old, kept])
    assert analysis.analyse(run_of(item)).measurements[0].warnings == [kept]
