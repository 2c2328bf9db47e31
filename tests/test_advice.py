"""Every warning: samples that trigger it, samples just below that do not, and a sentence that says what to do."""

import numpy as np
import pytest
from msgspec.structs import replace

from measure import advice, analysis, statistics, text
from measure.run import Control, Measurement, Run
from tests.test_statistics import measurement, run_of


def codes(run: Run) -> list[str]:
    return [warning.code for warning in advice.of_run(run, statistics.detrend(run.measurements))]


def scattered(level_s: float, count: int, seed: int, deviation: float = 0.01) -> list[float]:
    return list(level_s * np.exp(np.random.default_rng(seed).normal(0.0, deviation, count)))


@pytest.mark.parametrize(("cores", "expected"), [(0.11, ["busy_before"]), (0.10, []), (None, [])])
def test_others_at_work_before_the_run_are_named(cores: float | None, expected: list[str]) -> None:
    run = replace(run_of(), environment={"load_of_others_cores": cores})
    assert codes(run) == expected


@pytest.mark.parametrize(("cores", "warned"), [(0.51, True), (0.50, False)])
def test_others_at_work_during_the_run_are_named(cores: float, warned: bool) -> None:
    warning = advice.busy_during(cores)
    assert (warning is not None) == warned
    assert warning is None or "0.5 cores" in warning.message


@pytest.mark.parametrize(("slower", "expected"), [(1.11, ["drift"]), (1.09, []), (1 / 1.12, ["drift"])])
def test_a_machine_that_changes_its_pace_during_the_run_is_named(slower: float, expected: list[str]) -> None:
    pace = [1.0] * 6 + [slower] * 6
    items = [measurement(slug, [[level * factor for factor in pace]]) for slug, level in (("a", 1), ("b", 2), ("c", 3))]
    assert codes(run_of(*items)) == expected
    if expected:
        (warning,) = analysis.analyse(run_of(*items)).warnings
        assert ("slower" if slower > 1 else "faster") in warning.message


@pytest.mark.parametrize(("resolution", "expected"), [(0.101, ["coarse_resolution"]), (0.10, [])])
def test_a_run_that_cannot_tell_a_tenth_says_so(resolution: float, expected: list[str]) -> None:
    run = replace(run_of(), control=Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=resolution))
    assert codes(run) == expected


def strategy_codes(item: Measurement, *others: Measurement) -> list[str]:
    return [warning.code for warning in advice.of_measurement(item, statistics.detrend([item, *others]))]


@pytest.mark.parametrize(("samples", "expected"), [(4, ["few_rounds"]), (5, []), (0, [])])
def test_a_latency_that_rests_on_few_samples_says_so(samples: int, expected: list[str]) -> None:
    assert strategy_codes(measurement("a", [scattered(1.0, samples, 0)])) == expected


@pytest.mark.parametrize(("change", "expected"), [(1.07, ["halves_differ"]), (1.04, []), (0.93, ["halves_differ"])])
def test_a_strategy_that_had_not_settled_is_named(change: float, expected: list[str]) -> None:
    processes = [[*scattered(1.0, 10, seed, 0.005), *scattered(change, 10, seed + 100, 0.005)] for seed in range(5)]
    steady = [measurement(slug, [scattered(1.0, 20, seed, 0.005) for seed in range(5)]) for slug in ("b", "c")]
    assert strategy_codes(measurement("a", processes), *steady) == expected


def test_a_large_difference_of_halves_within_the_scatter_is_chance() -> None:
    assert strategy_codes(measurement("a", [scattered(1.0, 5, 1, 0.2) + scattered(1.08, 5, 2, 0.2)])) == []


@pytest.mark.parametrize(("gap", "expected"), [(1.15, ["multimodal"]), (1.08, []), (1.0, [])])
def test_calls_that_run_at_two_paces_are_named(gap: float, expected: list[str]) -> None:
    # The paces alternate, so that the halves of the samples do not differ.
    fast, slow = scattered(1.0, 10, 3, 0.004), scattered(gap, 10, 4, 0.004)
    samples = [value for pair in zip(fast, slow, strict=True) for value in pair]
    assert strategy_codes(measurement("a", [samples])) == expected


def test_wide_but_single_paced_samples_are_not_called_multimodal() -> None:
    items = [measurement("a", [scattered(1.0, 20, seed, 0.10)]) for seed in range(300)]
    assert sum("multimodal" in strategy_codes(item) for item in items) <= 6


def test_derived_warnings_are_computed_anew_and_seen_ones_are_kept() -> None:
    seen = advice.not_saved("No space left on device")
    run = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[seen])
    once = analysis.analyse(run)
    assert [warning.code for warning in once.warnings] == ["not_saved", "busy_before"]
    assert analysis.analyse(once).warnings == once.warnings


def test_what_tensorflow_said_and_how_often_it_traced_is_attached_to_the_strategy() -> None:
    warnings = advice.of_strategy(["The name is not unique"], retraces=2)
    assert [warning.code for warning in warnings] == ["tensorflow", "retrace"]
    assert "traces 2 functions anew" in warnings[1].message
    assert advice.of_strategy([], retraces=0) == []


def test_falling_back_to_a_while_loop_is_said_once_with_the_ops() -> None:
    said = [
        "Using a while_loop for converting Foo cause No pfor vectorization defined for Foo\n{{node Foo}} = Foo()",
        "The name is not unique",
        "Using a while_loop for converting Bar cause Bar is stateful",
        "Using a while_loop for converting Foo cause No pfor vectorization defined for Foo\n{{node Foo_1}} = Foo()",
    ]
    found, other = advice.of_strategy(said, retraces=0)
    assert (found.code, found.values) == ("falls_back", {"ops": ["Foo", "Bar"]})
    assert found.message.startswith("falls back to a while loop: tf.vectorized_map cannot vectorise Foo, Bar,")
    assert (other.code, other.message) == ("tensorflow", "The name is not unique")


@pytest.mark.parametrize(
    ("call_s", "other_s", "warned"),
    [
        (0.0004, 0.012, True),
        (0.0004, 0.0023, False),  # a call that was disturbed
        (0.004, 0.0119, False),  # caches
        (0.004, 0.0121, True),
    ],
)
def test_a_call_that_is_slow_with_other_values_is_warned_about(call_s: float, other_s: float, warned: bool) -> None:
    warning = advice.compiled_values(call_s, other_s)
    assert (warning is not None) == warned
    if warning is not None:
        assert text.seconds(other_s) in warning.message and text.seconds(call_s) in warning.message


def test_every_rule_has_a_code_of_its_own() -> None:
    rules = [rule.code for rule in (*advice.RUN_RULES, *advice.STRATEGY_RULES)]
    assert len(set(rules)) == len(rules)
