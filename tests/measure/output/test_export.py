"""What leaves: numbers arrive as they are, texts as texts, in spreadsheets, in Markdown and in pictures."""

import csv
import io
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from measure import __main__ as command_line
from measure.judge import limit
from measure.judge.findings import findings
from measure.output import export, table
from measure.run import decision, why
from measure.run.encoding import encode
from measure.run.run import Crossover, Error, Run, Warning
from measure.store import imports
from measure.store.store import Store
from tests import synthetic
from tests.keeping import in_report, put
from tests.synthetic import HOSTILE
from views.charts import files

ID = "0123456789abcdef01234567"
FORMULAS = ("=1+1", "-1+cmd", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "\n=1")
COMMANDS = ("a\x1b]0;x\x07b", "a\x08b", "a\u202eb", "\x1b[31ma", "a\x9b2Jb")
TEXTS = (
    HOSTILE, "<script>x</script>", "[x](javascript:alert(1))", "![x](http://x/y.png)", "a | b", "`code`", "# head",
    "1. item", "> quote", "a\n\n# b", "&lt;b&gt;", "***", "</details>", "\\|", "| ", "```\nx\n```", "[x]: http://y",
)  # fmt: skip
PICTURE = "<script>alert(1)</script><image href='http://x/y.png'/>"


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def hostile(text: str, axes: int = 0) -> Run:
    """A comparison, or a sweep over so many axes, in which every text is this one, the names of its axes as well."""
    run = (synthetic.run, synthetic.sweep, synthetic.winners)[axes](ID)
    named = {"strategy": text, "mapper": text, "mode": text}
    request = replace(run.request, workload=text, dtype=text, device=text, size={text: 1}, strategies=[text])
    ended = {"verdict": text, "status": "interrupted", "stop_reason": text, "request": request}
    ended["decision"] = decision.make(text, text, text, text)
    if not axes:
        evil = replace(run.measurement("batched.xla"), **named, error=Error(type=text, message=text, detail=text))
        environment = {"cpu_model": text, "os": text}
        return replace(run, measurements=[evil], ranking=[[text]], environment=environment, **ended)
    names = {axis.name: f"{text}{' ' * number}" for number, axis in enumerate(run.axes)}
    points = [
        replace(
            point,
            at={names[name]: value for name, value in point.at.items()},
            reason=text,
            measurements=[replace(item, **named) for item in point.measurements[:1]],
            ranking=[[text]] if all(item.latency for item in point.measurements[:1]) else [],
        )
        for point in run.points
    ]
    axis = names[run.axes[0].name]
    crossed, fits = Crossover(a=text, b=text, axis=axis, none=text), run.fits[:1]
    return replace(
        run,
        axes=[replace(axis, name=names[axis.name]) for axis in run.axes],
        points=points,
        crossovers=[crossed],
        fits=[replace(fit, strategy=text, axis=axis, note=text) for fit in fits],
        **ended,
    )


def test_the_table_has_a_line_for_each_strategy_with_exact_numbers():
    run = limit.judge(replace(synthetic.run(ID), limit=replace(synthetic.run(ID).limit, seconds=0.0018)))
    found = lines("".join(export.table_csv(run)))
    assert len(found) == sum(m.twin_of is None for m in run.measurements)
    for line in found:
        m = run.measurement(line["strategy"])
        assert line["outcome"] == m.outcome
        assert line["latency_s"] == ("" if m.latency is None else repr(m.latency.median_s))
        assert line["peak_bytes"] == ("" if m.memory is None else str(m.memory.peak_bytes))
        assert line["times_limit"] == str(m.why.times_limit or "")
        assert (line["limit_note"], line["limit_s"]) == (m.why.limit_note or "", repr(run.limit.seconds))
    assert any(line["limit_note"] for line in found) and any(line["times_limit"] for line in found)


def test_every_sample_is_in_the_samples():
    run = synthetic.run(ID)
    found = lines("".join(export.samples_csv(run)))
    assert len(found) == sum(len(replica.samples_s) for m in run.measurements for replica in m.replicas)
    mine = [line for line in found if line["strategy"] == "loop.eager" and line["process"] == "1"]
    replica = run.measurement("loop.eager").replicas[1]
    assert [float(line["seconds"]) for line in mine] == replica.samples_s
    assert [int(line["round"]) for line in mine] == replica.rounds
    assert {line["twin_of"] for line in found} == {"", run.control.strategy}


def test_no_cell_is_a_formula_and_no_text_a_command_to_a_terminal():
    for text in (*FORMULAS, *COMMANDS):
        for run in (hostile(text, axes) for axes in range(3)):
            tables = ("".join(export.table_csv(run)), "".join(export.samples_csv(run)))
            for each in tables:
                cells = [cell for line in csv.reader(io.StringIO(each, newline="")) for cell in line]
                assert not [cell for cell in cells if cell.lstrip(" ")[:1] in tuple("=+-@\t\r\n＝")], text
                assert text not in FORMULAS or "'" + text.replace("\r", "\n") in cells
            for each in (*tables, export.markdown(run)) if text in COMMANDS else ():
                assert not [sign for sign in each if not sign.isprintable() and sign not in "\n\u2060"], text


def rendered(text: str) -> str:
    """As a Markdown reader shows it, with tables; HTML in it stays HTML, which is what a forge sanitises."""
    return MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(text)


def test_a_text_stays_a_text_in_a_summary():
    allowed = {"p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul", "li"}
    for text in TEXTS:
        for columns in range(3):
            run = hostile(text, columns)
            page = rendered(export.markdown(run, None))
            assert set(re.findall(r"<([a-z0-9]+)", page)) <= allowed, page
            before = page.split("<details>")[0]
            assert page.count("</details>") == 1
            if columns:
                assert before.count("<th") - before.count("<thead") == columns + 2
                continue
            assert before.count("<td") == len(table.cells(findings(run))[0])
            as_shown = re.sub(r"<[^>]+>", "", page).replace("\u2060", "")
            for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
                as_shown = as_shown.replace(entity, sign)
            for line, before in zip(as_shown.splitlines(), ("Decision: ", "", "", "by ", ""), strict=False):
                assert line.startswith(before + " ".join(text.split()))
    for text in ("@someone", "fixes #12", "GH-12", "https://x.example", "www.x.example", ":smile:"):
        outside_of_code = re.sub(r"`[^`]*`", "", export.markdown(hostile(text), None))
        assert text not in outside_of_code.replace("\\", ""), "nobody is mentioned, and nothing is linked"


def test_warnings_limits_and_reasons_are_in_the_summary_and_on_the_terminal_once_each():
    run = synthetic.run(ID)
    same = run.measurement("vectorized_map.eager").warnings[0]
    first, *others = [replace(m, warnings=[same]) if m.mapper == "map_fn" else m for m in run.measurements]
    noted = [Warning(code="busy", message="others were busy"), Warning(code="tensorflow", message="long " * 100)]
    ran = [why.Ran(name="</details>", count=1, seconds=9e-4)]
    reasons = why.Why(call_s=1e-3, profiled_s=1e-3, op_count=1, in_ops_s=9e-4, ops=ran)
    run = replace(run, measurements=[replace(first, why=reasons), *others], warnings=noted)
    shared = "vectorized_map.eager, map_fn.xla, map_fn.graph, map_fn.eager: "
    assert table.notes(run) == ["others were busy", f"{'long ' * 59}long …", f"{shared}{same.message}"]
    page, shown = rendered(export.markdown(run)), table.render(run)
    assert [line[2:] for line in shown.splitlines() if line.startswith("- ")] == table.notes(run)
    fold = page.split("<summary>Why</summary>")[1].split("</details>")[0]
    assert fold.count("<li>") == 1 and first.strategy in fold and "&lt;/details&gt;" in fold
    assert re.findall(r"<li>(.*?)</li>", page.replace(fold, "")) == table.notes(run)
    judged = limit.judge(replace(run, limit=replace(run.limit, seconds=0.0018, term="memory-bound")))
    page, shown = rendered(export.markdown(judged)), table.render(judged)
    beside = table.sentences(findings(judged))
    assert all(line in page and line in shown for line in beside)
    assert any("batched.xla is faster than the theoretical floor" in line for line in beside)


def test_texts_in_pictures_are_texts():
    for run in (hostile(PICTURE, axes) for axes in range(3)):
        for name, drawn in files.of(run).items():
            svg = files.convert(drawn, "svg").decode()
            assert "&lt;script&gt;" in svg and "<script" not in svg and "<image" not in svg, name
    bare = replace(synthetic.run(ID), measurements=[], ranking=[])
    assert files.of(bare) == {}, "nothing to show is no picture"


@pytest.mark.usefixtures("live")
def test_every_chart_becomes_a_picture_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """From the command line, in a process that fetches nothing and that the caller does not import."""
    file = tmp_path / "my run.json"
    file.write_bytes(encode(synthetic.run(ID, ("batched.xla", "loop.eager"))))
    assert command_line.main(["export", str(file), "--svg", "--into", str(tmp_path / "out")]) == 0
    made = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert set(made) == {f"my run.{name}.svg" for name in ("comparison", "break-even", "samples", "timeline")}
    assert sorted(capsys.readouterr().out.split("\n")[:-1]) == sorted(str(tmp_path / "out" / name) for name in made)
    svg = made["my run.comparison.svg"]
    assert svg.startswith("<svg") and "batched.xla" in svg and "currentColor" not in svg


def test_a_report_is_written_of_files_reports_and_runs_that_are_kept_and_read_like_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(export, "report", lambda runs: in_report(*map(encode, runs)))
    put(Store(tmp_path / "home"), replace(synthetic.sweep(), id="1" * 24))
    file, one, both = (tmp_path / name for name in ("run.json", "one.html", "both.html"))
    file.write_bytes(encode(synthetic.run(ID)))
    assert command_line.main(["report", str(file), "--out", str(one)]) == 0
    assert command_line.main(["report", str(one), "1" * 24, str(file), "--out", str(both)]) == 0
    assert [run.id for run in imports.read_all(both.read_bytes())] == [ID, "1" * 24]
    assert command_line.main(["export", str(one), "--json", "--into", str(tmp_path)]) == 0
    assert (tmp_path / "one.json").read_bytes().rstrip() == encode(synthetic.run(ID))
    capsys.readouterr()
    for arguments, says in (
        (["export", str(both), "--csv"], "holds 2 runs, and one is needed"),
        (["report", str(file), "--out", str(tmp_path / "no" / "where.html")], "cannot be written"),
        (["report", *[str(file)] * (imports.MOST_RUNS + 1), "--out", "-"], "101 runs are too many"),
        (["report", "2" * 24, "--out", "-"], "is not known here"),
    ):
        assert command_line.main(arguments) == 2 and says in capsys.readouterr().err


def test_artifacts_of_explanations_are_written_for_a_run_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    file, run = tmp_path / "run.json", synthetic.run(ID)
    first = run.measurements[0]
    second = replace(run.measurement("loop.xla"), strategy="loop.xla?a=1&b=../x")
    run = replace(run, measurements=[second if item.strategy == "loop.xla" else item for item in run.measurements])
    file.write_bytes(encode(run))
    export_all = ["export", str(file), "--graph", "--hlo", "--trace", "--into"]
    assert command_line.main([*export_all, str(tmp_path / "none")]) == 2, "none is kept here"
    assert ID in capsys.readouterr().err and not (tmp_path / "none").exists()
    kept = Store(tmp_path / "home")
    put(kept, run)
    kept.explain(ID, first.strategy, why.Why(), {why.GRAPH: b"nodes", why.TRACE: b"\x1f\x8b"})
    kept.explain(ID, second.strategy, why.Why(), {why.GRAPH: b"more", why.HLO: b"ENTRY"})
    assert command_line.main([*export_all, str(tmp_path / "out")]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {
        f"run.{first.strategy}.graph.txt": b"nodes",
        f"run.{first.strategy}.trace.json.gz": b"\x1f\x8b",
        "run.loop.xla-a-1-b-..-x.graph.txt": b"more",
        "run.loop.xla-a-1-b-..-x.hlo.txt": b"ENTRY",
    }
