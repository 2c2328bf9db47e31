"""What did not work and what is to be known: identical sentences in one line, with the names of all strategies."""

from msgspec.structs import replace

from measure.judge.findings import findings
from measure.run.run import Error, Measurement, OutcomeName, Run
from tests import synthetic
from views.result import problems

RUN = synthetic.run()


def failed(run: Run) -> list[problems.Failure]:
    return problems.failures(findings(run))


def ended(outcome: OutcomeName, message: str = "", detail: str = "{}", count: int = 10) -> Run:
    """The run with its first strategies so ended; ``{}`` in a text stands for the strategy's slug."""

    def end(item: Measurement) -> Measurement:
        error = Error(type="E", message=message.format(item.strategy), detail=detail.format(item.strategy))
        return replace(item, outcome=outcome, error=error, latency=None, replicas=[], memory=None, correctness=None)

    return replace(RUN, measurements=[end(item) for item in RUN.measurements[:count]], ranking=[], control=None)


def test_those_with_one_sentence_are_one_line_with_all_names_and_each_text_once() -> None:
    (line,) = failed(ended("out_of_memory", "OOM when allocating for {}", "ResourceExhaustedError: {}"))
    assert line.status == "out of memory" and len(line.rows) == 10
    assert line.sentence.startswith("It needs more memory than there is: ")
    # Their texts differ: each is there, on demand.
    assert [slugs for slugs, _ in line.details] == [[row.slug] for row in line.rows]
    (line,) = failed(ended("failed", "the function raised", "Traceback: the function raised"))
    assert [len(slugs) for slugs, _ in line.details] == [10]
    lines = failed(ended("failed", "{} raised", "", count=3))
    assert [line.sentence for line in lines] == [f"{line.rows[0].slug} raised" for line in lines] and len(lines) == 3
    (line,) = failed(ended("failed", "Graph execution error:", "Graph execution error:\n\nthe cause", count=1))
    assert "Graph" not in line.sentence and "the cause" in line.details[0][1], "an error that only announces itself"


def test_every_kind_of_failure_has_its_sentence_but_a_persons_cancel_is_none() -> None:
    lines = {line.rows[0].slug: line for line in failed(RUN)}
    assert len(lines) == 5 and all(line.sentence for line in lines.values())
    assert "within 10 s" in lines["loop.xla"].sentence and "12% of the values" in lines["dataset.graph"].sentence
    assert lines["dataset.graph"].status == "wrong" and lines["dataset.graph"].details == []
    assert RUN.measurement("chunked.xla").outcome == "cancelled"
    assert "chunked.xla" not in [row.slug for line in lines.values() for row in line.rows]
    limited = replace(RUN, request=replace(RUN.request, memory_limit_mib=60))
    assert any("than the limit of 60 MiB" in line.sentence for line in failed(limited))
