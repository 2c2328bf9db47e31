"""Warnings of samples: those that trigger each, those just below that do not, and a sentence that says what to do."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge import advice, analysis, rules
from measure.model.run import Control, Error, Run
from measure.statistics.effects import detrend
from tests.samples import measurement, run_of
from tests.simulation import Model, simulate

# Samples that count of each process of a contender where a race is decided at the first look: four rounds with all. Of
# one that died in scouting and of a strategy that is clearly slower there are the five of scouting.
RACE, CLEAR = (4, 4, 4, 4, 4), (5,)


def codes(
    run: Run, effects: Sequence[float] = (), phases: Sequence[int] | None = None, steps: Sequence[float] = (0.0,)
) -> list[str]:
    """Codes of the warnings about a run whose rounds have these effects, and phases, which are ``steps`` apart."""
    numbers = np.zeros(len(effects), int) if phases is None else np.array(phases)
    samples: Any = SimpleNamespace(logs={}, effects=np.array(effects), phases=numbers, steps=np.array(steps))
    return [warning.code for warning in rules.of_run(run, samples)]


@pytest.mark.parametrize(("cores", "expected"), [(0.21, ["busy_before"]), (0.20, []), (None, [])])
def test_others_at_work_before_the_run_are_named(cores: float | None, expected: list[str]) -> None:
    run = replace(run_of(), environment={"load_of_others_cores": cores})
    assert codes(run) == expected


@pytest.mark.parametrize(
    ("slower", "rounds", "expected"),
    [
        (1.105, 9, ["drift"]),
        (1.095, 9, []),
        (0.895, 9, ["drift"]),
        (0.905, 9, []),
        (1.105, 6, ["drift"]),
        (1.105, 5, []),
    ],
)
def test_a_machine_that_changes_its_pace_during_the_run_is_named(
    slower: float, rounds: int, expected: list[str]
) -> None:
    third = rounds // 3
    effects = [0.0] * third + [math.log(slower) / 2] * (rounds - 2 * third) + [math.log(slower)] * third
    assert codes(run_of(), effects) == expected


def test_a_trend_is_seen_through_phases_of_a_run_and_scatter_is_none() -> None:
    two_phases = [0] * 6 + [1] * 6
    ramp = [0.06 * (each - 2.5) / 5 for each in range(6)]
    assert codes(run_of(), ramp + ramp, two_phases) == ["drift"], "6 % in each"
    assert codes(run_of(), ramp + [0.0] * 6, two_phases) == [], "6 % in one"
    scatter = [0.1, -0.1, 0.08, -0.1, 0.1, -0.08, 0.1, -0.1, 0.1, 0.1, 0.1, 0.1]
    assert codes(run_of(), scatter) == [], "the last third is 10.5 % above the first by chance"


@pytest.mark.parametrize(("after", "expected"), [(2.05, ["drift"]), (1.95, []), (1 / 2.05, ["drift"]), (1 / 1.95, [])])
def test_a_step_from_phase_to_phase_is_the_machines_where_it_is_more_than_warming_up_explains(
    after: float, expected: list[str]
) -> None:
    steps = [0.0] * 5 + [math.log(after)] * 4
    assert codes(run_of(), [0.0] * 9, [0] * 5 + [1] * 4, steps) == expected


@pytest.mark.slow
def test_a_run_that_slows_down_throughout_says_so_and_one_that_does_not_says_nothing() -> None:
    def drifts(drift: float) -> int:
        # A race that is decided at the first look takes nine rounds.
        model = Model(drift=drift, rounds=9)
        found = [simulate({"a": 1e-3, "b": 1.3e-3, "c": 2e-3}, model, seed) for seed in range(20)]
        runs = [analysis.analyse(run_of(*each.measurements)) for each in found]
        return sum("drift" in {warning.code for warning in run.warnings} for run in runs)

    assert drifts(0.5) >= 18
    assert drifts(0.0) <= 1


@pytest.mark.parametrize(("slower", "word"), [(1.2, "slower"), (1 / 1.2, "faster")])
def test_drift_is_seen_in_samples_and_claims_no_more_than_is_so(slower: float, word: str) -> None:
    pace = [1.0] * 6 + [slower] * 6
    items = [measurement(slug, [[level * factor for factor in pace]]) for slug, level in (("a", 1), ("b", 2), ("c", 3))]
    (warning,) = analysis.analyse(run_of(*items)).warnings
    assert word in warning.message and "the order holds among what was sampled in the same rounds" in warning.message


@pytest.mark.parametrize(("resolution", "expected"), [(0.101, ["coarse_resolution"]), (0.10, [])])
def test_a_run_that_cannot_tell_a_tenth_says_so(resolution: float, expected: list[str]) -> None:
    run = replace(run_of(), control=Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=resolution))
    assert codes(run) == expected


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
        ("budget", False, "there was no time left for the leader's second entry. Small differences may be chance; "
                          "a longer time budget gives it"),
        ("cancelled", False, "it was cancelled before that."),
        ("interrupted", False, "it ended before that."),
        ("complete", True, "the second entry of a failed."),
    ],
)  # fmt: skip
def test_why_there_is_no_control_is_said(status: str, twin_failed: bool, why: str) -> None:
    error = Error(type="Crash", message="it died") if twin_failed else None
    twin = replace(measurement("a#twin", [], twin_of="a"), error=error)
    run = replace(run_of(twin), **{**ENDED, "status": status})
    (warning,) = rules.of_run(run, detrend(run.measurements))
    assert warning.message.startswith(f"this run's resolution was not measured: {why}")


# --- of a strategy -------------------------------------------------------------------------------------------------


def found_in(processes: Sequence[Sequence[float]]) -> list[str]:
    """Codes of the warnings about a strategy with these samples, one sequence per process, seconds."""
    samples: Any = SimpleNamespace(logs={"a": [np.log(each) for each in processes]}, effects=np.zeros(0))
    return [warning.code for warning in rules.of_measurement(measurement("a", []), samples)]


def message_of(processes: Sequence[Sequence[float]]) -> str:
    samples: Any = SimpleNamespace(logs={"a": [np.log(each) for each in processes]}, effects=np.zeros(0))
    (warning,) = rules.of_measurement(measurement("a", []), samples)
    return warning.message


def processes_of(
    counts: Sequence[int], seed: int = 0, *, process: float = 0.02, sample: float = 0.002
) -> list[np.ndarray]:
    """Seconds: processes with so many samples each, levels of their own, and little scatter."""
    rng = np.random.default_rng(seed)
    return [np.exp(rng.normal(0.0, process) + rng.normal(0.0, sample, count)) for count in counts]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((4,), ["few_rounds"]),
        ((5,), []),
        ((), []),
        ((1,) * 5, ["few_rounds"]),
        ((2,) * 5, ["few_rounds"]),
        ((3,) * 5, []),
        ((9, 4, 4, 4, 2), ["few_rounds"]),
        ((9, 4, 4, 4, 3), []),
        ((3,), ["few_rounds"]),
        (RACE, []),
    ],
)
def test_a_latency_that_rests_on_few_samples_says_so(counts: Sequence[int], expected: list[str]) -> None:
    assert found_in(processes_of(counts)) == expected


def test_few_samples_of_a_process_are_counted_not_those_of_all() -> None:
    assert "5 processes with as few as 1 sample," in message_of(processes_of((1,) * 5))
    assert "rests on 4 samples," in message_of(processes_of((4,)))
    assert "rests on 1 sample," in message_of(processes_of((1,)))


def changed(processes: Sequence[np.ndarray], change: float) -> list[np.ndarray]:
    """The second half of each process' samples takes ``change`` times as long."""
    return [each * np.where(np.arange(len(each)) < len(each) // 2, 1.0, change) for each in processes]


@pytest.mark.parametrize(
    ("change", "expected"),
    [(1.055, ["halves_differ"]), (1.045, []), (0.945, ["halves_differ"]), (0.955, []), (1.0, [])],
)
def test_a_strategy_that_had_not_settled_is_named(change: float, expected: list[str]) -> None:
    assert found_in(changed(processes_of(RACE), change)) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (RACE, ["halves_differ"]),
        ((9, 4, 4, 4, 4), ["halves_differ"]),
        ((9, 4, 4), ["halves_differ"]),
        ((4, 4, 4), []),  # one of 140 by chance, and no less
        ((9, 3, 3, 3, 3), []),  # a half of one sample says nothing
        ((9,), []),
        (CLEAR, []),
    ],
)
def test_halves_are_judged_where_there_are_enough_to_be_sure(counts: Sequence[int], expected: list[str]) -> None:
    assert found_in(changed(processes_of(counts), 1.08)) == expected


def test_one_disturbed_sample_hides_no_change_and_makes_none() -> None:
    steady, late = processes_of(RACE), changed(processes_of(RACE), 1.055)
    for processes in (steady, late):
        processes[0][2] *= 1.5
        processes[3][3] *= 1.5
    assert found_in(steady) == [] and found_in(late) == ["halves_differ"]


def test_a_large_difference_of_halves_within_the_scatter_is_chance() -> None:
    found = [found_in(changed(processes_of(RACE, seed, sample=0.15), 1.06)) for seed in range(20)]
    assert sum("halves_differ" in each for each in found) <= 2


def test_what_the_machine_did_to_all_is_not_said_of_a_strategy() -> None:
    slow = [[value * factor for value, factor in zip(each, [1.0] * 4 + [1.2] * 5, strict=True)]
            for each in processes_of((9, 9, 9))]  # fmt: skip
    items = [measurement(slug, slow) for slug in ("a", "b")]
    samples = detrend(items)
    assert rules.of_measurement(items[0], samples) == []


def two_paced(counts: Sequence[int], gap: float, slow: Sequence[int] | None = None) -> list[np.ndarray]:
    """Every second sample takes ``gap`` times as long, or so many of each process as ``slow`` says."""
    slow = [count // 2 for count in counts] if slow is None else slow
    found = processes_of(counts)
    for each, number in zip(found, slow, strict=True):
        each[1 : 2 * number : 2] *= gap
    return found


@pytest.mark.parametrize(("gap", "expected"), [(1.105, ["multimodal"]), (1.095, []), (1.0, [])])
def test_calls_that_run_at_two_paces_are_named(gap: float, expected: list[str]) -> None:
    # The paces alternate, so that the halves of the samples do not differ.
    assert found_in(two_paced(RACE, gap)) == expected


@pytest.mark.parametrize(("level", "expected"), [(0.95, ["multimodal"]), (1.05, [])])
def test_two_paces_stand_far_apart_of_what_they_scatter(level: float, expected: list[str]) -> None:
    gap, counts = math.log(1.2), (8, 4, 4, 4, 4)
    # All rests are of one size, and of 24 samples 6 numbers are fitted.
    rest = level * gap / 7 * math.sqrt((24 - 6) / 24)
    processes = [np.exp(np.tile([-rest, gap - rest, gap + rest, rest], count // 4)) for count in counts]
    assert found_in(processes) == expected


@pytest.mark.parametrize(
    ("counts", "slow", "expected"),
    [
        ((8, 4, 4, 4, 4), (2, 1, 1, 1, 1), ["multimodal"]),  # a quarter is at the other pace
        ((8, 4, 4, 4, 4), (1, 1, 1, 1, 1), []),
        ((12, 4, 4, 4), (6, 2, 0, 0), ["multimodal"]),  # half of the processes switch
        ((12, 4, 4, 4, 4), (6, 2, 0, 0, 0), []),
        ((8, 4, 4), (4, 2, 2), ["multimodal"]),
        ((7, 4, 4), (3, 2, 2), []),  # 15 samples
        ((8, 4, 3, 3), (4, 2, 1, 1), []),  # 12 of processes that have four
        (CLEAR, (2,), []),
    ],
)
def test_two_paces_need_samples_and_processes_that_show_them(
    counts: Sequence[int], slow: Sequence[int], expected: list[str]
) -> None:
    assert found_in(two_paced(counts, 1.2, slow)) == expected


def test_a_disturbed_sample_hides_no_two_paces() -> None:
    processes = two_paced(RACE, 1.12)
    processes[2][0] *= 3.0
    assert found_in(processes) == ["multimodal"]


def test_processes_at_levels_of_their_own_hide_no_two_paces_and_make_none() -> None:
    levels = [0.88, 0.94, 1.0, 1.07, 1.14]
    alone, both = processes_of(RACE, process=0.0), two_paced(RACE, 1.12)
    assert found_in([each * level for each, level in zip(alone, levels, strict=True)]) == []
    assert found_in([each * level for each, level in zip(both, levels, strict=True)]) == ["multimodal"]


@pytest.mark.slow
def test_wide_but_single_paced_samples_are_not_called_multimodal() -> None:
    found = [found_in(processes_of(RACE, seed, process=0.03, sample=0.05)) for seed in range(300)]
    assert sum("multimodal" in each for each in found) <= 2


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (1.32, ["processes_differ"]),
        (1.28, []),
        (1 / 1.32, ["processes_differ"]),
        (1 / 1.28, []),
        (2.0, ["processes_differ"]),
    ],
)
@pytest.mark.parametrize("counts", [RACE, (8, 3), (5, 3, 3)])
def test_a_process_at_another_pace_is_named(counts: Sequence[int], times: float, expected: list[str]) -> None:
    processes = processes_of(counts, process=0.0)
    processes[-1] *= times
    assert found_in(processes) == expected


def test_a_process_at_another_pace_is_told_with_what_to_do() -> None:
    slow, fast = processes_of(RACE, process=0.0, sample=0.0), processes_of((8, 3), process=0.0, sample=0.0)
    slow[2] *= 2
    fast[1] /= 1.5
    assert "one of its 5 processes is 2.00 × as slow as the others" in message_of(slow)
    assert "measure again to see how often" in message_of(slow)
    assert "one of its 2 processes is 1.50 ×" in message_of(fast)


def test_disturbed_samples_make_no_process_another() -> None:
    processes = processes_of(RACE, process=0.0)
    processes[1][:2] *= 2.0
    processes[2][2:] *= 2.0
    assert found_in(processes) == []
    processes[1][2] *= 2.0
    assert found_in(processes) == ["processes_differ"]
    three = processes_of((8, 3), process=0.0)
    three[1][:2] *= 2.0
    assert found_in(three) == []
    few = processes_of((9, 2), process=0.0)
    few[1] *= 2.0
    assert found_in(few) == ["few_rounds"]


@pytest.mark.slow
@pytest.mark.parametrize("model", [Model(process=0.02, sample=0.03), Model(process=0.06, sample=0.05)])
@pytest.mark.parametrize("behind", [1.02, 1.5])
def test_ordinary_races_are_not_warned_about(model: Model, behind: float) -> None:
    """Twelve strategies, close and clear leaders, a disturbed sample now and then."""
    latencies_s = {f"s{number}": 1e-3 * behind**number for number in range(12)}
    warned = []
    for seed in range(25):
        samples = detrend(items := simulate(latencies_s, model, seed).measurements)
        warned += [code for item in items for code in {each.code for each in rules.of_measurement(item, samples)}]
    assert len(warned) <= 3, warned  # a hundredth of the strategies


def test_the_values_of_derived_warnings_have_the_digits_that_every_machine_agrees_on() -> None:
    pace = [1.0] * 6 + [math.sqrt(3.0)] * 6
    processes = [[level * factor for factor in pace] for level in (1.0, 1.0, math.e)]
    items = [measurement("a", processes), measurement("b", [[7.0 * factor for factor in pace]])]
    found = analysis.analyse(run_of(*items))
    values = {each.code: each.values for each in [*found.warnings, *found.measurements[0].warnings]}
    for value in (values["drift"]["change"], values["processes_differ"]["times"]):
        assert value == float(f"{value:.10g}") != round(value, 6)


def test_derived_warnings_are_computed_anew_and_seen_ones_are_kept() -> None:
    seen = advice.not_saved("No space left on device")
    run = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[seen])
    once = analysis.analyse(run)
    assert [warning.code for warning in once.warnings] == ["not_saved", "busy_before"]
    assert analysis.analyse(once).warnings == once.warnings


def test_every_rule_has_a_code_of_its_own() -> None:
    codes = [rule.code for rule in (*rules.RUN_RULES, *rules.STRATEGY_RULES)]
    assert len(set(codes)) == len(codes)
