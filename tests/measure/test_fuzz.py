"""Some of the fuzzed files, links and requests; 2,000 files and 1,000 others by ``python -m tests.benchmarks.fuzz``."""

from pathlib import Path

import pytest

import workloads
from measure.model.request import RequestError, parse
from measure.sweep.request import parse_sweep
from tests import fuzz
from tests.fuzz import Found


def test_a_fuzzed_file_is_accepted_and_shown_or_refused_with_one_sentence(tmp_path: Path):
    found = Found()
    with fuzz.pages(tmp_path):
        fuzz.try_files(range(150), found)
    found.wrong = [sentence for sentence in found.wrong if " took " not in sentence]
    assert found.wrong == []
    assert {"accepted", "refused"} <= {key.rpartition(" ")[2] for key in found.counts}


def test_a_fuzzed_link_draws_its_page_without_a_traceback(tmp_path: Path):
    found = Found()
    with fuzz.pages(tmp_path) as own:
        fuzz.try_links(range(24), found)
        assert found.wrong == [] and own.submitted == []
    assert {key.rpartition(" ")[2] for key in found.counts} == set(fuzz.PAGES)


def test_a_fuzzed_request_is_taken_or_refused_with_one_sentence_and_nothing_started(tmp_path: Path):
    found = Found()
    fuzz.try_requests(range(60), found, tmp_path)
    assert found.wrong == []
    assert found.counts["requests: accepted"] and found.counts["requests: refused"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("budget_s", 10**400), ("workload_options", True), ("workload_options", [[]]), ("dtype", " ")],
    ids=["a huge budget", "no options", "options in a list", "no dtype"],
)
def test_a_value_that_is_none_of_its_field_is_refused_for_sweeps_too(name: str, value: object):
    raw = {"workload": "square", name: value}
    with pytest.raises(RequestError, match=r"is not valid|has no"):
        parse(raw)
    with pytest.raises(RequestError, match=r"is not valid|has no"):
        parse_sweep(raw | {"axes": [{"name": "batch", "values": [1, 2]}]})


def test_a_refusal_of_a_value_that_is_long_says_its_begin_and_what_is_valid():
    with pytest.raises(RequestError) as refused:
        parse({"workload": "x" * 10_000})
    said = str(refused.value)
    assert said.startswith("workload 'xxx") and " […] " in said and workloads.names()[-1] in said and len(said) < 1_300
