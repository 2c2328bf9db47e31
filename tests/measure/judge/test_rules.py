"""Warnings of what the data of a run show: what triggers each, and what is just below and does not."""

from msgspec.structs import replace

from measure.judge import advice, analysis, rules
from measure.run.run import Control, Run, Warning
from tests.samples import measurement, run_of
from tests.simulation import Model, simulate


def codes(run: Run) -> list[str]:
    return [warning.code for warning in rules.of_run(run)]


def test_others_at_work_before_the_run_are_named() -> None:
    for cores, expected in ((0.21, ["busy_before"]), (0.20, []), (None, [])):
        assert codes(replace(run_of(), environment={"load_of_others_cores": cores})) == expected


def test_a_run_that_cannot_tell_a_fifth_says_so_where_several_lead() -> None:
    """A longer budget is advised only where the budget was spent."""
    tie, lead = [["a", "b"], ["c"]], [["a"], ["b", "c"]]
    for resolution, ranking, expected in (
        (0.201, tie, ["coarse_resolution"]), (0.20, tie, []), (0.3, lead, []), (0.3, [], []),
    ):  # fmt: skip
        control = Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=resolution)
        assert codes(replace(run_of(), control=control, ranking=ranking)) == expected, (resolution, ranking)
    control = Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=0.3)
    for status, longer in (("budget", True), ("complete", False)):
        (warning,) = rules.of_run(replace(run_of(), control=control, ranking=tie, status=status))
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


def test_ordinary_runs_are_not_warned_about() -> None:
    """Six strategies, close and clear leaders, and nothing else at work."""
    warned = 0
    for seed in range(24):
        model = (Model(process=0.02, sample=0.03), Model(process=0.03, sample=0.02))[seed % 2]
        latencies_s = {f"s{number}": 1e-3 * (1.02, 1.5)[seed % 4 // 2] ** number for number in range(6)}
        run = replace(run_of(*simulate(latencies_s, model, seed).measurements), finished="2026-01-01T00:00:09Z")
        run = analysis.analyse(replace(run, status="complete"))
        warned += bool(run.warnings) or any(item.warnings for item in run.measurements)
    assert warned <= 2


def test_a_latency_of_one_or_two_samples_is_named() -> None:
    for samples, expected in (([1.0], ["few_rounds"]), ([1.0] * 2, ["few_rounds"]), ([1.0] * 3, []), ([], [])):
        assert [warning.code for warning in rules.of_measurement(measurement("a", [samples]))] == expected


def test_derived_warnings_are_computed_anew_and_seen_ones_are_kept() -> None:
    """Codes that only earlier methods gave are taken off."""
    seen = advice.not_kept("No space left on device", in_file=False)
    run = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[seen])
    once = analysis.analyse(run)
    assert [warning.code for warning in once.warnings] == ["not_saved", "busy_before"]
    drifted = Warning(code="drift", message="seen by an earlier method")
    assert analysis.analyse(replace(once, warnings=[*once.warnings, drifted])).warnings == once.warnings
    old = [Warning(code=code, message="seen by an earlier method") for code in ("halves_differ", "multimodal")]
    kept = Warning(code="retrace", message="every call traces a function anew")
    item = replace(measurement("a", [[1.0] * 5] * 3), warnings=[*old, kept])
    assert analysis.analyse(run_of(item)).measurements[0].warnings == [kept]
