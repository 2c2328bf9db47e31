"""What leaves: numbers arrive as they are, texts as texts, in spreadsheets, in Markdown and in pictures."""

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from measure import __main__ as command_line
from measure.judge import limit
from measure.model import why
from measure.model.run import Crossover, Error, Run, Warning
from measure.model.run_file import encode
from measure.output import export, rows, sweep_table, table
from measure.store import imports
from measure.store.store import Store
from tests import synthetic
from tests.engine import ROOT, environment
from tests.synthetic import HOSTILE
from views.charts import files

ID = "0123456789abcdef01234567"
FORMULAS = ["=1+1", "+1", "-1+cmd", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", '=HYPERLINK("http://x","y")', "\n=1"]


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def hostile(text: str) -> Run:
    """A run in which every text is this one."""
    run = synthetic.run(ID)
    item = run.measurement("batched.xla")
    evil = replace(item, strategy=text, mapper=text, mode=text, error=Error(type=text, message=text, detail=text))
    return replace(
        run,
        measurements=[evil],
        ranking=[[text]],
        verdict=text,
        status="interrupted",
        stop_reason=text,
        environment={"cpu_model": text, "os": text},
        request=replace(run.request, workload=text, dtype=text, device=text, size={text: 1}),
    )


def hostile_sweep(text: str, axes: int) -> Run:
    """A sweep in which every text is this one, the names of its axes as well."""
    run = synthetic.sweep(ID) if axes == 1 else synthetic.winners(ID)
    names = {axis.name: f"{text}{' ' * number}" for number, axis in enumerate(run.axes)}
    points = [
        replace(
            point,
            at={names[name]: value for name, value in point.at.items()},
            reason=text,
            measurements=[replace(item, strategy=text, mapper=text, mode=text) for item in point.measurements[:1]],
            ranking=[[text]],
        )
        for point in run.points
    ]
    axis = names[run.axes[0].name]
    return replace(
        run,
        axes=[replace(axis, name=names[axis.name]) for axis in run.axes],
        points=points,
        crossovers=[Crossover(a=text, b=text, axis=axis, none=text)],
        fits=[replace(fit, strategy=text, axis=axis, note=text) for fit in run.fits[:1]],
        verdict=text,
        status="interrupted",
        stop_reason=text,
        request=replace(run.request, workload=text, dtype=text, device=text, size={text: 1}, strategies=[text]),
    )


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_the_table_has_a_line_for_each_strategy_with_exact_numbers():
    run = synthetic.run(ID)
    table_rows = lines("".join(export.table_csv(run)))
    assert [line["strategy"] for line in table_rows][:2] == run.ranking[0]
    assert len(table_rows) == sum(m.twin_of is None for m in run.measurements)
    for line in table_rows:
        m = run.measurement(line["strategy"])
        assert line["outcome"] == m.outcome
        assert line["latency_s"] == ("" if m.latency is None else repr(m.latency.median_s))
        assert line["peak_bytes"] == ("" if m.memory is None else str(m.memory.peak_bytes))
    assert [line["rank"] for line in table_rows][:3] == ["1", "1", "3"]


def test_every_sample_is_in_the_samples():
    run = synthetic.run(ID)
    table_rows = lines("".join(export.samples_csv(run)))
    assert len(table_rows) == sum(len(replica.samples_s) for m in run.measurements for replica in m.replicas)
    mine = [line for line in table_rows if line["strategy"] == "loop.eager" and line["process"] == "1"]
    replica = run.measurement("loop.eager").replicas[1]
    assert [float(line["seconds"]) for line in mine] == replica.samples_s
    assert [int(line["round"]) for line in mine] == replica.rounds
    assert {line["twin_of"] for line in table_rows} == {"", run.control.strategy}


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula(formula: str):
    for run in (hostile(formula), hostile_sweep(formula, 1), hostile_sweep(formula, 2)):
        for text in ("".join(export.table_csv(run)), "".join(export.samples_csv(run))):
            cells = [cell for line in csv.reader(io.StringIO(text, newline="")) for cell in line]
            assert "'" + formula.replace("\r", "\n") in cells
            assert not [cell for cell in cells if cell.lstrip(" ")[:1] in tuple("=+-@\t\r\n＝")]


def test_the_limit_is_in_the_table():
    run = limit.judge(replace(synthetic.run(ID), limit=replace(synthetic.run(ID).limit, term="memory-bound")))
    faster = replace(run.limit, seconds=0.0018)
    noted = limit.judge(replace(run, limit=faster))
    for each in (run, noted):
        for line in lines("".join(export.table_csv(each))):
            m = each.measurement(line["strategy"])
            assert line["times_limit"] == ("" if limit.multiple(m) is None else repr(limit.multiple(m)))
            assert line["limit_note"] == limit.note(m)
            assert (line["limit_s"], line["limit_term"]) == (repr(each.limit.seconds), "memory-bound")
    assert any(line["limit_note"].startswith("faster than") for line in lines("".join(export.table_csv(noted))))
    assert {line["limit_s"] for line in lines("".join(export.table_csv(replace(run, limit=None))))} == {""}


def test_what_is_to_be_known_of_a_function_of_ones_own_is_below_the_verdict_in_every_form():
    said = ["It draws random numbers: values are not compared.", "It prints in Python, <b>once</b>."]
    noted = [Warning(code="drift", message="the machine became slower")]
    for run, shown in ((synthetic.run(ID), table.render), (synthetic.sweep(ID), sweep_table.render)):
        own = synthetic.of_function(replace(run, warnings=noted), *said)
        _, below = shown(own).split(own.verdict)
        assert "\n\nAbout softened:\n- " + "\n- ".join(said) + "\n" in f"{below}\n"
        assert "About" not in shown(synthetic.of_function(run)) and "About" not in shown(run)
        drawn = MarkdownIt("commonmark").render(export.markdown(own))
        head, told = drawn.split("<p>About softened:</p>\n")
        assert own.verdict in head
        listed, _, rest = told.partition("</ul>")
        assert re.findall(r"<li>(.*)</li>", listed) == [said[0], "It prints in Python, &lt;b&gt;once&lt;/b&gt;."]
        assert "slower" in rest
    long = synthetic.of_function(synthetic.run(ID), "word " * 1_000)
    assert len(table.render(long)) < len(table.render(synthetic.run(ID))) + 700


def test_ties_share_their_rank_and_the_next_counts_them_in_every_form():
    run = synthetic.run()
    expected = {row.slug: row.rank for row in rows.make(run) if row.rank is not None}
    assert list(expected.values())[:6] == [1, 1, 3, 3, 5, 6]
    written = {line["strategy"]: int(line["rank"]) for line in lines("".join(export.table_csv(run))) if line["rank"]}
    shown = {line[1]: int(line[0]) for line in table.body(run) if line[0] != "–"}
    assert written == shown == expected


@pytest.mark.parametrize("command", ["a\x1b]0;x\x07b", "a\x08b", "a\u202eb", "\x1b[31ma", "a\x9b2Jb"])
def test_no_text_that_leaves_is_a_command_to_a_terminal(command: str):
    for run in (hostile(command), hostile_sweep(command, 1), hostile_sweep(command, 2)):
        for text in ("".join(export.table_csv(run)), "".join(export.samples_csv(run)), export.markdown(run)):
            assert not [sign for sign in text if not sign.isprintable() and sign not in "\n\u2060"]


# --- Markdown --------------------------------------------------------------------------------------------------------


def rendered(text: str) -> str:
    """As a Markdown reader shows it, with tables; HTML in it stays HTML, which is what a forge sanitises."""
    return MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(text)


def test_a_summary_has_verdict_table_environment_in_a_fold_and_link():
    run = replace(synthetic.run(ID), environment={"cpu_model": "Zen 5", "cores_granted": 8, "tensorflow": "2.21.0"})
    link = f"https://bench.example/?run={ID}"
    text = export.markdown(run, link)
    page = rendered(text)
    assert text.startswith(f"**{run.verdict.replace('[', '').split(':')[0]}")
    before, fold = page.split("<details>")
    assert before.count("<tr>") == 1 + sum(m.twin_of is None for m in run.measurements)
    assert "<code>batched.xla</code>" in before and "Zen 5, 8 cores" in before and "out of memory" in before
    assert "<summary>Environment</summary>" in fold and "2.21.0" in fold.split("</details>")[0]
    assert f'href="{link}"' in fold.split("</details>")[1]
    assert ID in export.markdown(run) and "href" not in rendered(export.markdown(run))


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE, "<script>alert(1)</script>", "[x](javascript:alert(1))", "![x](http://x/y.png)", "a | b | c", "`code`",
        "https://evil.example", "<https://evil.example>", "# head", "- item", "1. item", "> quote", "a\n\n# b",
        "&lt;b&gt;", "***", "~~gone~~", "</details>", "$x$", "\\", "|", "```\nx\n```", "[x]: http://y", "a\\|b", "=\n=",
    ],
)  # fmt: skip
def test_a_text_stays_a_text_in_a_summary(text: str):
    page = rendered(export.markdown(hostile(text), None))
    allowed = {"p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert set(re.findall(r"<([a-z0-9]+)", page)) <= allowed, page
    assert page.count("</details>") == 1 and page.split("<details>")[0].count("<td") == len(table.head())
    shown = " ".join(text.split())
    as_shown = re.sub(r"<[^>]+>", "", page.split("</p>")[0]).replace("\u2060", "")
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        as_shown = as_shown.replace(entity, sign)
    assert as_shown == shown


def test_warnings_of_the_run_and_of_strategies_are_in_the_summary_and_on_the_terminal_once_each():
    run = synthetic.run(ID)
    other = Warning(code="tensorflow", message="long " * 100)
    same = run.measurement("vectorized_map.eager").warnings[0]
    measurements = [
        replace(
            m, warnings=[same, Warning(code="chosen", message="chunk is 8")] if m.mapper == "map_fn" else m.warnings
        )
        for m in run.measurements
    ]
    run = replace(run, measurements=measurements, warnings=[Warning(code="busy", message="others were busy"), other])
    shared = "map_fn.xla, map_fn.graph, vectorized_map.eager, map_fn.eager: "
    assert table.notes(run) == ["others were busy", f"{'long ' * 59}long …", f"{shared}{same.message}"]
    shown, page = table.render(run).splitlines(), rendered(export.markdown(run))
    assert [line[2:] for line in shown if line.startswith("- ")] == table.notes(run)
    assert re.findall(r"<li>(.*?)</li>", page) == table.notes(run)


def test_a_summary_names_the_limit_and_says_why_a_strategy_has_no_multiple():
    run = synthetic.run(ID)
    noted = limit.judge(replace(run, limit=replace(run.limit, seconds=0.0018, term="memory-bound")))
    page = rendered(export.markdown(noted))
    for line in table.limits(noted):
        assert line in page and line in table.render(noted)
    assert "The theoretical floor (estimate) is 1.80 ms, memory-bound: 9.38 MiB at 14 GB/s." in page
    assert "batched.xla is faster than the theoretical floor" in page and page.count("faster than the theoretical") == 5
    assert "theoretical floor" not in export.markdown(replace(run, limit=None))


def test_a_summary_holds_the_reasons_in_a_fold_where_there_are_some():
    run = synthetic.run(ID)
    assert "<summary>Why</summary>" not in export.markdown(run)
    reasons = why.Why(
        call_s=1e-3, profiled_s=1e-3, op_count=1, in_ops_s=9e-4, ops=[why.Ran(name="</details>", count=1, seconds=9e-4)]
    )
    explained = [replace(run.measurements[0], why=reasons), *run.measurements[1:]]
    page = rendered(export.markdown(replace(run, measurements=explained)))
    fold = page.split("<summary>Why</summary>")[1].split("</details>")[0]
    assert fold.count("<li>") == 1 and run.measurements[0].strategy in fold and "&lt;/details&gt;" in fold


@pytest.mark.parametrize("text", ["<script>x</script>", "a | b", "`code`", "[x](http://y)", "</details>", "\\|", "| "])
@pytest.mark.parametrize("axes", [1, 2])
def test_a_text_stays_a_text_in_the_summary_of_a_sweep(text: str, axes: int):
    page = rendered(export.markdown(hostile_sweep(text, axes), None))
    allowed = {"p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul", "li"}
    assert set(re.findall(r"<([a-z0-9]+)", page)) <= allowed, page
    before = page.split("<details>")[0]
    assert page.count("</details>") == 1 and before.count("<th") - before.count("<thead") == axes + 2


@pytest.mark.parametrize("text", ["@someone", "fixes #12", "GH-12", "https://x.example", "www.x.example", ":smile:"])
def test_nobody_is_mentioned_and_nothing_is_linked(text: str):
    outside_of_code = re.sub(r"`[^`]*`", "", export.markdown(hostile(text), None))
    assert text not in outside_of_code.replace("\\", "")


# --- pictures --------------------------------------------------------------------------------------------------------


def test_every_chart_becomes_a_picture_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """From the command line, in a process that fetches nothing and that the caller does not import."""
    run = replace(synthetic.run(ID), parent=None)
    file = tmp_path / "my run.json"
    file.write_bytes(encode(run))
    assert command_line.main(["export", str(file), "--svg", "--png", "--into", str(tmp_path / "out")]) == 0
    made = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert set(made) == {f"my run.{name}.{form}" for name in files.COMPARE for form in files.FORMATS}
    assert sorted(capsys.readouterr().out.split("\n")[:-1]) == sorted(str(tmp_path / "out" / name) for name in made)
    assert all(data[:8] == b"\x89PNG\r\n\x1a\n" for name, data in made.items() if name.endswith("png"))
    svg = made["my run.latency.svg"].decode()
    assert svg.startswith("<svg") and "batched.xla" in svg and "timed out" in svg and "currentColor" not in svg
    assert "batch 100, height 64" in svg and "entered twice" not in svg


def test_texts_in_a_picture_are_texts():
    run = hostile("<script>alert(1)</script><image href='http://x/y.png'/>")
    svg = (files.convert(run, "latency", "svg") or b"").decode()
    assert "&lt;script&gt;" in svg and "<script" not in svg and "<image" not in svg


@pytest.mark.parametrize("axes", [1, 2])
def test_texts_in_a_picture_of_a_sweep_are_texts(axes: int):
    run = hostile_sweep("<script>alert(1)</script><image href='http://x/y.png'/>", axes)
    for name in files.of(run):
        svg = (files.convert(run, name, "svg") or b"").decode()
        assert "&lt;script&gt;" in svg and "<script" not in svg and "<image" not in svg, name


def test_a_chart_without_anything_to_show_is_no_picture():
    bare = replace(synthetic.run(ID), measurements=[], ranking=[])
    assert all(files.specification(bare, name) is None for name in files.COMPARE)


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_bytes(encode(synthetic.run(ID)) + b"\n")
    return path


def test_texts_are_written_beside_each_other(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out"
    options = ["--json", "--csv", "--samples", "--markdown"]
    assert command_line.main(["export", str(file), *options, "--into", str(out), "--link", "http://x/?run=1"]) == 0
    run = synthetic.run(ID)
    assert (out / "run.json").read_bytes() == file.read_bytes()
    assert (out / "run.csv").read_text() == "".join(export.table_csv(run))
    assert (out / "run.samples.csv").read_text() == "".join(export.samples_csv(run))
    assert (out / "run.md").read_text() == export.markdown(run, "http://x/?run=1")
    assert len(capsys.readouterr().out.split()) == 4


def test_what_explanations_have_left_is_written_by_strategy(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    run = synthetic.run(ID)
    first = run.measurements[0]
    second = replace(run.measurement("loop.xla"), strategy="loop.xla?a=1&b=../x")
    run = replace(run, measurements=[second if item.strategy == "loop.xla" else item for item in run.measurements])
    file.write_bytes(encode(run))
    kept = Store(tmp_path / "home")
    kept.save(run)
    kept.explain(ID, first.strategy, why.Why(), {why.GRAPH: b"nodes", why.TRACE: b"\x1f\x8b"})
    kept.explain(ID, second.strategy, why.Why(), {why.GRAPH: b"more", why.HLO: b"ENTRY"})
    for asked, prefix in ((ID, ID), (str(file), "run")):
        out = tmp_path / f"of_{prefix}"
        assert command_line.main(["export", asked, "--graph", "--hlo", "--trace", "--into", str(out)]) == 0
        expected = {
            f"{prefix}.{first.strategy}.graph.txt": b"nodes",
            f"{prefix}.{first.strategy}.trace.json.gz": b"\x1f\x8b",
            f"{prefix}.loop.xla-a-1-b-..-x.graph.txt": b"more",
            f"{prefix}.loop.xla-a-1-b-..-x.hlo.txt": b"ENTRY",
        }
        assert {path.name: path.read_bytes() for path in out.iterdir()} == expected
        assert sorted(capsys.readouterr().out.split()) == sorted(str(out / name) for name in expected)


def test_a_run_without_explanations_has_none_to_write(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    assert command_line.main(["export", str(file), "--csv", "--hlo", "--into", str(tmp_path / "out")]) == 2
    assert f"no hlo.txt of run {ID} is kept here" in capsys.readouterr().err
    assert not (tmp_path / "out").exists(), "all or nothing"


def test_a_summary_of_a_run_in_the_store_goes_to_stdout(tmp_path: Path):
    Store(tmp_path).save(synthetic.run(ID))
    done = subprocess.run(
        [sys.executable, "-m", "measure", "export", ID, "--markdown", "--into", "-"],
        cwd=ROOT, env=environment(MAPBENCH_HOME=str(tmp_path)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == export.markdown(synthetic.run(ID)) and done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["RUN"], "nothing is chosen to be written: name at least one of --json, --csv"),
        (["RUN", "--csv", "--markdown", "--into", "-"], "--into - writes one of --json, --csv"),
        (["RUN", "--svg", "--into", "-"], "--into - writes one of"),
        (["RUN", "--graph", "--into", "-"], "--into - writes one of"),
        (["RUN", "--csv", "--into", "RUN"], "cannot be written into"),
        (["nowhere.json", "--csv"], "nowhere.json cannot be read: No such file"),
        (["f" * 24, "--csv"], f"run {'f' * 24} is not known here"),
        (["BROKEN", "--csv"], r"cannot be exported: this is not a valid run file: .* - at `\$\.request\.budget_s`"),
        (["LARGE", "--csv"], "cannot be exported: this file is too large"),
    ],
)
def test_what_cannot_be_exported_is_said(
    arguments: list[str], says: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    broken, large = tmp_path / "broken.json", tmp_path / "large.json"
    broken.write_bytes(file.read_bytes().replace(b'"budget_s": 30.0', b'"budget_s": -1'))
    large.write_bytes(b" " * (imports.MOST_BYTES + 1))
    names = {"RUN": file, "BROKEN": broken, "LARGE": large}
    assert command_line.main(["export", *(str(names.get(each, each)) for each in arguments)]) == 2
    told = capsys.readouterr()
    assert re.search(says, told.err) and told.err.startswith("error: ") and told.out == ""
