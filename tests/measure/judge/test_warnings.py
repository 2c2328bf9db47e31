"""Warnings of a run and of its strategies: what triggers each, and what is just below and does not."""

from msgspec.structs import replace

from measure.judge import analysis, warnings
from measure.run.run import Run, Warning
from tests.samples import measurement, run_of


def codes(run: Run) -> list[str]:
    return [warning.code for warning in warnings.of_run(run)]


def test_others_at_work_before_the_run_are_named() -> None:
    for cores, expected in ((0.21, ["busy_before"]), (0.20, []), (None, [])):
        assert codes(replace(run_of(), environment={"load_of_others_cores": cores})) == expected
    both = replace(
        run_of(), environment={"load_of_others_cores": 2.0}, warnings=[warnings.warning("busy_during", cores=2.0)]
    )
    assert codes(both) == ["busy_during"], "once"


def test_too_few_samples_for_a_ratio_are_named() -> None:
    for slices, words in (
        ([9], "9 slices in 1 process"), ([2, 2], "4 slices in 2 processes"), ([3, 2], ""), ([], ""),
    ):  # fmt: skip
        found = warnings.of_measurement(measurement("a", [[1.0] * count for count in slices]))
        assert [words in warning.message for warning in found] == [True] * bool(words)


def test_derived_warnings_are_computed_anew_and_seen_ones_are_kept() -> None:
    """Codes that only earlier methods gave are taken off."""
    seen = warnings.warning("not_saved", reason="No space left on device")
    run = replace(run_of(), environment={"load_of_others_cores": 2.0}, warnings=[seen])
    once = analysis.analyse(run)
    assert [warning.code for warning in once.warnings] == ["not_saved", "busy_before"]
    drifted = Warning(code="drift", message="seen by an earlier method")
    assert analysis.analyse(replace(once, warnings=[*once.warnings, drifted])).warnings == once.warnings
    old = [Warning(code=code, message="seen by an earlier method") for code in ("halves_differ", "multimodal")]
    kept = Warning(code="retrace", message="every call traces a function anew")
    item = replace(measurement("a", [[1.0] * 5] * 3), warnings=[*old, kept])
    assert analysis.analyse(run_of(item)).measurements[0].warnings == [kept]


def test_others_at_work_and_a_limit_that_held_are_named_where_they_are_much() -> None:
    busy, held = warnings.of_load(0.51, 0.06)
    assert (busy.values, held.values) == ({"cores": 0.51}, {"share": 0.06}) and warnings.of_load(0.5, 0.05) == []


def test_what_tensorflow_did_is_attached_to_the_strategy() -> None:
    assert warnings.of_tensorflow([], retraces=0) == []
    fallback, retrace = warnings.of_tensorflow(["Foo", "Bar", "Foo"], retraces=2)
    assert (fallback.code, fallback.values) == ("falls_back", {"ops": ["Foo", "Bar"]})
    assert retrace.code == "retrace" and "2 functions" in retrace.message


def test_what_calls_with_new_values_trace_and_compile_is_said_where_it_was_counted() -> None:
    assert warnings.compiled_values(0, 0) == []
    for traces, compilations, words in (
        (3, 0, "traces 3 functions anew"),
        (0, 1, "compiles 1 program anew"),
        (1, 2, "traces 1 function and compiles 2 programs anew"),
    ):
        (warning,) = warnings.compiled_values(traces, compilations)
        assert f"every call with new values {words}" in warning.message
        assert (warning.code, list(warning.values.values())) == ("compiled_values", [traces, compilations])
