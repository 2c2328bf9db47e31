"""The warnings that Mapbench attaches to a result, all in one place: each says what was seen and what to do."""

from measure.run import Warning


def of_strategy(said: list[str], retraces: int) -> list[Warning]:
    """Warnings of one strategy, from what TensorFlow said while it ran and from the functions one steady call traced."""
    warnings = [Warning(code="tensorflow", message=text) for text in said]
    if retraces:
        functions = "a function" if retraces == 1 else f"{retraces} functions"
        warnings.append(
            Warning(
                code="retrace",
                message=f"every call traces {functions} anew: put the mapping inside a tf.function to trace once",
                values={"traces_per_call": retraces},
            )
        )
    return warnings


def not_saved(reason: str) -> Warning:
    """The run's file could not be written."""
    return Warning(
        code="not_saved",
        message=f"this run could not be written to disk ({reason}): download it now, it is lost when the server ends",
    )
