"""A report as HTML: what is in it, that texts stay texts, and that its runs come out of it as they went in."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
import vl_convert
from msgspec.structs import replace

from measure.claims.spec import Script
from measure.output import command
from measure.run.encoding import encode
from measure.run.run import Decision, Evidence, Run, ScriptEnd
from measure.store import imports
from tests import claims, synthetic
from tests.measure.output.test_export import hostile
from tests.synthetic import HOSTILE
from views.report import page
from workloads import elems_file

OTHER = "1" * 24
TAGS = (
    r"html|head|meta|title|style|body|main|article|h[1-4]|nav|ol|ul|li|a|p|br|strong|code|pre|button|figure|"
    r"figcaption|div|script|table|thead|tbody|tr|t[hd]|d[ltd]|details|summary|span|footer"
)


class Read(HTMLParser):
    """The elements of a page with their attributes, its scripts, and all words that it shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements, self.scripts, self.words = list[tuple[str, dict[str, str | None]]](), list[str](), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.scripts += [""] if tag == "script" else []

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        elif self.cdata_elem is None:
            self.words += data


@pytest.fixture(autouse=True)
def _no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of a megabyte of charts' code, which takes a second to be put together."""
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet: snippet)


def made(*runs: Run) -> str:
    return "".join(page.made([encode(run) for run in runs]))


def of_claims(text: str = "report(x=1)") -> Run:
    claim = claims.of_one_test(Script)
    script = ScriptEnd(source=text, error=text, printed=text)
    return replace(claims.run([claim]), stop_reason=text, evidence=[Evidence(need=claim.needs[0].key, script=script)])


def every_kind(text: str) -> list[Run]:
    """A run of each kind in which every text is this one, under an id of its own."""
    runs = [*(hostile(text, axes) for axes in range(3)), of_claims(text), synthetic.of_function(synthetic.run(), text)]
    decision = Decision(title=text, note=text, decision=text, by=text, at="2026-11-27T05:00:00Z")
    return [replace(run, id=f"{number:024x}", decision=decision) for number, run in enumerate(runs)]


def test_the_runs_in_a_report_come_out_of_it_to_the_byte():
    for runs in (every_kind(HOSTILE), [synthetic.run(), synthetic.partial(3, OTHER)], [of_claims("<!--<script>")]):
        assert [encode(run) for run in imports.read_all(made(*runs).encode())] == [encode(run) for run in runs]


@pytest.mark.parametrize("text", [HOSTILE, "<!--<script>", "</style></title>", "{{ 7 * 7 }}{% raw %}", "' onload='x"])
def test_texts_stay_texts_and_nothing_is_fetched(text: str):
    runs = every_kind(text)
    read = Read(made(*runs))
    assert not [tag for tag, _ in read.elements if not re.fullmatch(TAGS, tag)]
    names = {name for _, of in read.elements for name in of}
    assert not [name for name in names if name.startswith("on")] and not names & {"src", "srcset", "action"}
    assert all((of["href"] or "").startswith("#") for _, of in read.elements if "href" in of)
    assert read.words.count(text) >= 7 * len(runs)
    assert sum(of.get("class") == "mapbench-run" for _, of in read.elements) == len(runs)


def test_its_policy_lets_nothing_run_but_its_own_script():
    read = Read(made(synthetic.run()))
    policy = next(of["content"] for tag, of in read.elements if tag == "meta" and "http-equiv" in of)
    scripts = [of.get("type") for tag, of in read.elements if tag == "script"]
    assert scripts.count(None) == 1 and set(scripts) == {None, "application/json"}
    script = read.scripts[scripts.index(None)]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy and policy.startswith("default-src 'none'; ")
    assert "eval" not in policy and [tag for tag, _ in read.elements].index("meta") == 2, "before all that it is for"


def test_a_comparison_has_all_that_a_review_asks_for():
    run = synthetic.of_function(synthetic.run(), "it draws random numbers")
    charts, words = page.section(run)["charts"], Read(made(run)).words
    assert len(charts) == 4 and charts[0][0] == "Latency of one call, memory and largest error"
    for expected in (
        "softened", run.id, "batched.xla", "2-way tie within", "TensorFlow 2.21.0", "1.44 ms", "It needs more memory",
        "OOM when allocating", "traces anew at every call", "# batched.xla", "A made-up CPU", "def softened",
        "it draws random numbers", command.of(run),
    ):  # fmt: skip
        assert expected in words, expected
    given = replace(run.request.own.given, elems=elems_file.NAME)
    elsewhere = replace(run, request=replace(run.request, own=replace(run.request.own, given=given)))
    assert "stays where it was measured" in Read(made(elsewhere)).words and "stays where" not in words


def test_a_sweep_and_claims_have_their_own_tables():
    sweep, mapped = (Read(made(run)).words for run in (synthetic.sweep(), synthetic.winners()))
    assert "overtakes" in sweep and "no answer within 10 s" in sweep and "This cannot fit" in sweep
    assert "Fastest strategy" in mapped and "at batch 1, height 8" in mapped
    tried = Read(made(of_claims())).words
    assert claims.of_one_test(Script).id in tried and "report(x=1)" in tried
    assert "No claim was tried" in Read(made(claims.run([]))).words


def test_several_runs_have_contents_and_those_of_one_case_are_put_side_by_side():
    first, second = synthetic.run(), synthetic.run(OTHER, seed=1)
    read = Read(made(first, second, synthetic.sweep("2" * 24)))
    links = [of["href"] for tag, of in read.elements if tag == "a"]
    assert links == ["#pair-1", "#run-1", "#run-2", "#run-3"]
    assert {of["id"] for _, of in read.elements if "id" in of} == {link[1:] for link in links}
    assert "later / earlier" in read.words and "relative to map_fn.graph" in read.words
    elsewhere = replace(second, request=replace(second.request, device="GPU:0"))
    assert "later / earlier" not in Read(made(first, elsewhere)).words, "another case"
