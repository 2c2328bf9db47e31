"""Warnings of a run and of its strategies: what triggers each, and what is just below and does not."""

from msgspec.structs import replace

from measure.judge import analysis, warnings
from measure.run.run import Run, Warning
from tests.samples import measurement, run_of
from tests.simulation import Model, simulate


def codes(run: Run) -> list[str]:
    return [warning.code for warning in warnings.of_run(run)]


def test_others_at_work_before_the_run_are_named() -> None:
    for cores, expected in ((0.21, ["busy_before"]), (0.20, []), (None, [])):
        assert codes(replace(run_of(), environment={"load_of_others_cores": cores})) == expected
    both = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[warnings.busy_during(2.0)])
    assert codes(both) == ["busy_during"], "once"


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
        assert [warning.code for warning in warnings.of_measurement(measurement("a", [samples]))] == expected


def test_derived_warnings_are_computed_anew_and_seen_ones_are_kept() -> None:
    """Codes that only earlier methods gave are taken off."""
    seen = warnings.not_kept("No space left on device", in_file=False)
    run = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[seen])
    once = analysis.analyse(run)
    assert [warning.code for warning in once.warnings] == ["not_saved", "busy_before"]
    drifted = Warning(code="drift", message="seen by an earlier method")
    assert analysis.analyse(replace(once, warnings=[*once.warnings, drifted])).warnings == once.warnings
    old = [Warning(code=code, message="seen by an earlier method") for code in ("halves_differ", "multimodal")]
    kept = Warning(code="retrace", message="every call traces a function anew")
    item = replace(measurement("a", [[1.0] * 5] * 3), warnings=[*old, kept])
    assert analysis.analyse(run_of(item)).measurements[0].warnings == [kept]


def test_others_at_work_during_the_run_are_named() -> None:
    warning = warnings.busy_during(0.51)
    assert warning is not None and warning.values == {"cores": 0.51} and warnings.busy_during(0.50) is None


def test_what_tensorflow_did_is_attached_to_the_strategy() -> None:
    assert warnings.of_tensorflow([], retraces=0) == []
    fallback, retrace = warnings.of_tensorflow(["Foo", "Bar"], retraces=2)
    assert (fallback.code, fallback.values) == ("falls_back", {"ops": ["Foo", "Bar"]})
    assert retrace.code == "retrace" and "2 functions" in retrace.message


def test_what_calls_with_new_values_trace_and_compile_is_said_where_it_was_counted() -> None:
    assert warnings.compiled_values(0, 0) is None
    for traces, compilations, said in (
        (
            3,
            0,
            "every call with new values traces 3 functions anew, which the timed calls, always with the same values",
        ),
        (0, 1, "every call with new values compiles a program anew"),
        (1, 2, "every call with new values traces a function and compiles 2 programs anew"),
    ):
        warning = warnings.compiled_values(traces, compilations)
        assert warning is not None and warning.message.startswith(said)
        assert (warning.code, list(warning.values.values())) == ("compiled_values", [traces, compilations])
