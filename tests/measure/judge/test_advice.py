"""Warnings of what is seen while a run goes on: what triggers each, and the figures that it has."""

from measure.judge import advice


def test_others_at_work_during_the_run_are_named() -> None:
    warning = advice.busy_during(0.51)
    assert warning is not None and warning.values == {"cores": 0.51} and advice.busy_during(0.50) is None


def test_what_tensorflow_did_is_attached_to_the_strategy() -> None:
    assert advice.of_strategy([], retraces=0) == []
    fallback, retrace = advice.of_strategy(["Foo", "Bar"], retraces=2)
    assert (fallback.code, fallback.values) == ("falls_back", {"ops": ["Foo", "Bar"]})
    assert retrace.code == "retrace" and "2 functions" in retrace.message


def test_what_calls_with_new_values_trace_and_compile_is_said_where_it_was_counted() -> None:
    assert advice.compiled_values(0, 0) is None
    for traces, compilations, said in (
        (
            3,
            0,
            "every call with new values traces 3 functions anew, which the timed calls, always with the same values",
        ),
        (0, 1, "every call with new values compiles a program anew"),
        (1, 2, "every call with new values traces a function and compiles 2 programs anew"),
    ):
        warning = advice.compiled_values(traces, compilations)
        assert warning is not None and warning.message.startswith(said)
        assert (warning.code, list(warning.values.values())) == ("compiled_values", [traces, compilations])
