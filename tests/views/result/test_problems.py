"""What did not work and what is to be known: identical sentences in one line, with the names of all strategies."""

import pytest
from msgspec.structs import replace

from measure.model.run import Error, Measurement, OutcomeName, Run, Warning
from measure.output import rows, table
from tests import synthetic
from views.result import problems


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


def failed(run: Run) -> list[problems.Failure]:
    return problems.failures(rows.make(run), run)


def ended(run: Run, outcome: OutcomeName, message: str = "", detail: str = "{}", count: int = 10) -> Run:
    """The run with its first strategies so ended; ``{}`` in a text stands for the strategy's slug."""

    def end(item: Measurement) -> Measurement:
        error = Error(type="E", message=message.format(item.strategy), detail=detail.format(item.strategy))
        return replace(item, outcome=outcome, error=error, latency=None, replicas=[], memory=None, correctness=None)

    return replace(run, measurements=[end(item) for item in run.measurements[:count]], ranking=[], control=None)


def test_ten_that_run_out_of_memory_are_one_line_with_all_names_and_the_sentence_once(run: Run):
    (line,) = failed(ended(run, "out_of_memory", "OOM when allocating for {}", "ResourceExhaustedError: {}"))
    assert line.status == "out of memory" and len(line.rows) == 10
    assert line.sentence.startswith("It needs more memory than there is: ")
    # Their texts differ: each is there, on demand.
    assert [slugs for slugs, _ in line.details] == [[row.slug] for row in line.rows]


def test_an_identical_text_is_there_once(run: Run):
    (line,) = failed(ended(run, "failed", "the function raised", "Traceback: the function raised"))
    assert [len(slugs) for slugs, _ in line.details] == [10]


def test_another_sentence_is_another_line(run: Run):
    lines = failed(ended(run, "failed", "{} raised", "", count=3))
    assert [line.sentence for line in lines] == [f"{line.rows[0].slug} raised" for line in lines] and len(lines) == 3
    assert all(line.details == [] for line in lines)


def test_failures_have_a_sentence_each(run: Run):
    lines = {line.rows[0].slug: line.sentence for line in failed(run)}
    assert lines["loop.xla"] == "The first call did not end within 10 s."
    assert lines["dataset.graph"] == (
        "12 % of the values differ from the reference. In output an error of relative 1.2e-06 is allowed."
    )
    assert len(lines) == 5 and all(lines.values())
    (wrong,) = [line for line in failed(run) if line.status == "wrong"]
    assert wrong.details == [], "the sentence has it all"


def test_a_persons_cancel_is_no_failure(run: Run):
    assert run.measurement("chunked.xla").outcome == "cancelled" and run.measurement("chunked.xla").error is not None
    assert "chunked.xla" not in [row.slug for line in failed(run) for row in line.rows]
    assert failed(ended(run, "cancelled", "cancelled by a person")) == []


def test_out_of_memory_says_of_which(run: Run):
    def sentence(limit: int | None) -> str:
        limited = replace(run, request=replace(run.request, memory_limit_mib=limit))
        return next(line.sentence for line in failed(limited) if line.status == "out of memory")

    assert sentence(60).startswith("It needs more memory than the limit of 60 MiB: ")
    assert sentence(None).startswith("It needs more memory than there is: ")


@pytest.mark.parametrize("message", ["Graph execution error:", ""])
def test_an_error_that_only_announces_itself_is_left_to_the_full_text(run: Run, message: str):
    (line,) = failed(ended(run, "failed", message, "Graph execution error:\n\nthe cause", count=1))
    assert line.sentence == "It ended without a message." and "the cause" in line.details[0][1]


def test_a_warning_of_many_strategies_is_one_note_the_same_as_in_the_terminal(run: Run):
    anew = Warning(code="retrace", message="every call traces a function anew")
    items = [replace(item, warnings=[anew, anew]) for item in run.measurements[:3]]
    warned = replace(run, measurements=items, warnings=[])
    said = problems.notes(rows.make(warned), warned)
    assert (
        said == ["batched.xla, batched.graph, batched.eager: every call traces a function anew"] == table.notes(warned)
    )
