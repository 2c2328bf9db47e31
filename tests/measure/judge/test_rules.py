"""Warnings of what the samples show: what triggers each, and what is just below and does not."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge import advice, analysis, rules
from measure.model.run import Control, Run, Warning
from measure.statistics.intervals import level, spread_of
from measure.statistics.levels import Levels, levels_of
from tests.samples import measurement, run_of
from tests.simulation import Model, simulate

# Processes of a strategy that is decided at the first look; samples of each.
CONTENDER, SAMPLES = 6, 30


def levels(
    logs: Mapping[str, Sequence[float]] | None = None,
    typical: Mapping[str, float] | None = None,
) -> Levels:
    """What is known of a run. ``logs``: one logarithm a process; ``typical``: where it is another than their mean."""
    arrays = {slug: np.array(values) for slug, values in (logs or {}).items()}
    spread = spread_of(list(arrays.values()))
    means = {slug: float(values.mean()) for slug, values in arrays.items()}
    by_slug = {slug: level(values, spread) for slug, values in arrays.items()}
    return Levels(by_slug, {**means, **(typical or {})}, arrays, spread)


def codes(run: Run, known: Levels | None = None) -> list[str]:
    return [warning.code for warning in rules.of_run(run, known or levels())]


# --- of a run --------------------------------------------------------------------------------------------------------


def test_others_at_work_before_the_run_are_named() -> None:
    for cores, expected in ((0.21, ["busy_before"]), (0.20, []), (None, [])):
        assert codes(replace(run_of(), environment={"load_of_others_cores": cores})) == expected


def test_a_run_that_cannot_tell_a_tenth_says_so_where_several_lead() -> None:
    """A longer budget is advised only where the budget was spent."""
    tie, lead = [["a", "b"], ["c"]], [["a"], ["b", "c"]]
    for resolution, ranking, expected in (
        (0.101, tie, ["coarse_resolution"]), (0.10, tie, []), (0.3, lead, []), (0.3, [], []),
    ):  # fmt: skip
        control = Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=resolution)
        assert codes(replace(run_of(), control=control, ranking=ranking)) == expected, (resolution, ranking)
    control = Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=0.2)
    for status, longer in (("budget", True), ("complete", False)):
        (warning,) = rules.of_run(replace(run_of(), control=control, ranking=tie, status=status), levels())
        assert ("longer time budget" in warning.message) == longer


def test_a_run_that_ended_without_its_control_says_that_its_resolution_is_not_known_and_why() -> None:
    ended = replace(run_of(), finished="2026-01-01T00:00:09Z", ranking=[["a"], ["b"]], status="budget")
    control = Control(strategy="a", ratio=1.0, low=0.99, high=1.01, resolution=0.01)
    for run, expected in (
        (ended, ["no_control"]),
        (replace(ended, ranking=[["a", "b"]]), ["no_control"]),
        (replace(ended, ranking=[["a"]]), []),
        (replace(ended, finished=None), []),
        (replace(ended, control=control), []),
    ):
        assert codes(run) == expected


def test_a_strategy_behind_the_leaders_that_would_lead_by_the_median_is_named() -> None:
    logs = {"a": [0.0] * 6, "b": [0.1] * 6, "c": [0.4] * 6, "wrong": [0.2] * 2}
    run = replace(run_of(), ranking=[["a", "b"], ["c"]])
    for typical, expected in (
        ({}, []),
        ({"a": 0.5}, []),  # the other leader is faster by the median, too
        ({"a": 0.5, "b": 0.5}, ["typical_differs"]),
        ({"a": 0.35, "b": 0.35}, []),
        ({"wrong": -1.0}, []),  # has no rank
    ):
        assert codes(run, levels(logs, typical)) == expected, typical
    (warning,) = rules.of_run(run, levels(logs, {"a": 0.6, "b": 0.6}))
    assert "c would lead" in warning.message


# --- of a strategy ---------------------------------------------------------------------------------------------------


def warnings_of(processes: Sequence[Sequence[float]]) -> list[Warning]:
    """The warnings about a strategy with these samples, one sequence per process, seconds."""
    item = measurement("a", [list(samples) for samples in processes])
    return rules.of_measurement(item, levels_of([item]))


def codes_of(processes: Sequence[Sequence[float]]) -> list[str]:
    return [warning.code for warning in warnings_of(processes)]


def test_few_samples_and_calls_of_which_half_take_much_longer_than_the_headline_are_named() -> None:
    assert codes_of([[1.0] * 2]) == ["few_rounds"] and codes_of([[1.0] * 3]) == []
    for processes in (1, 2, CONTENDER):
        for slow, expected in ((1.26, ["varies"]), (1.24, []), (1.0, [])):
            assert codes_of([[1.0] * 13 + [slow] * 17] * processes) == expected, (processes, slow)
    assert codes_of([[1.0] * 16 + [5.0] * 14] * CONTENDER) == [], "a minority of slow calls"
    (warning,) = warnings_of([[1.0] * 10 + [1.5] * 20] * CONTENDER)
    assert warning.values == {"beyond": pytest.approx(0.5)} and "50 %" in warning.message


def test_a_process_at_another_pace_is_named() -> None:
    for others in (2, CONTENDER - 1):
        for times in (1.31, 1.29, 1 / 1.31, 1 / 1.29):
            is_odd = abs(math.log(times)) > math.log(1.3)
            found = codes_of([[1.0] * SAMPLES] * others + [[times] * SAMPLES])
            assert found == (["processes_differ"] if is_odd else []), (others, times)
    for times, words in ((2.0, "2.00 × as slow"), (0.5, "2.00 × as fast")):
        (warning,) = warnings_of([[1.0] * SAMPLES] * 4 + [[times] * SAMPLES])
        assert f"one of its 5 processes is {words}" in warning.message
    assert codes_of([[pace] * SAMPLES for pace in (1.0, 1.2, 1.45, 1.7, 2.1)]) == [], "all differ, and none is odd"
    assert codes_of([[1.0] * SAMPLES, [2.0] * SAMPLES]) == [], "of two it is not known which is the odd one"


def test_ordinary_races_are_not_warned_about() -> None:
    """Twelve strategies, close and clear leaders, a disturbed sample now and then, and nothing else at work."""
    of_runs, of_strategies = [], []
    for seed in range(24):
        model = (Model(process=0.02, sample=0.03), Model(process=0.03, sample=0.02))[seed % 2]
        latencies_s = {f"s{number}": 1e-3 * (1.02, 1.5)[seed % 4 // 2] ** number for number in range(12)}
        run = replace(run_of(*simulate(latencies_s, model, seed).measurements), finished="2026-01-01T00:00:09Z")
        run = analysis.analyse(replace(run, status="complete"))
        of_runs += [warning.code for warning in run.warnings]
        of_strategies += [warning.code for item in run.measurements for warning in item.warnings]
    assert len(of_runs) <= 2, of_runs  # a coarse resolution is one in twenty where processes differ by 3 %
    assert len(of_strategies) <= 3, of_strategies  # a hundredth of the strategies


# --- analysed anew ---------------------------------------------------------------------------------------------------


def test_the_values_of_derived_warnings_have_the_digits_that_every_machine_agrees_on() -> None:
    logs = [0.0, 0.0, math.sqrt(0.2)]
    run = analysis.analyse(run_of(measurement("a", [[math.exp(value)] * 5 for value in logs])))
    times = run.measurements[0].warnings[0].values["times"]
    assert times == float(f"{times:.10g}") != round(times, 6)


def test_derived_warnings_are_computed_anew_and_seen_ones_are_kept() -> None:
    """Codes that only earlier methods gave are taken off."""
    seen = advice.not_saved("No space left on device")
    run = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[seen])
    once = analysis.analyse(run)
    assert [warning.code for warning in once.warnings] == ["not_saved", "busy_before"]
    drifted = Warning(code="drift", message="seen by an earlier method")
    assert analysis.analyse(replace(once, warnings=[*once.warnings, drifted])).warnings == once.warnings
    old = [Warning(code=code, message="seen by an earlier method") for code in ("halves_differ", "multimodal")]
    kept = Warning(code="retrace", message="every call traces a function anew")
    item = replace(measurement("a", [[1.0] * 5] * 3), warnings=[*old, kept])
    assert analysis.analyse(run_of(item)).measurements[0].warnings == [kept]
