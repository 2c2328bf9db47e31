"""README and docs: every link leads somewhere, and every command in them runs."""

import linecache
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache, partial
from pathlib import Path

import pytest

import workloads
from mapbench import Result, SweepResult
from measure import runner
from measure.__main__ import main
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.hosting import Limits
from measure.output.columns import COLUMNS
from tests.browser import ROOT
from tests.engine import Lent
from workloads import functions

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
QUESTIONS = ("using", "hosting", "command-line", "method", "trust", "performance", "claims", "extending")
QUESTIONS += ("developing", "faq")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:python|bash|streamlit) [^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Stands for what a reader fills in: such a line shows a form, not a command.
_PLACEHOLDER = re.compile(r"\b(RUN|FILE|FOLDER|ID|URL)\b")
TIMEOUT_S = 300

# Reads the arguments of each command on stdin as the script itself does, and ends it before it measures anything.
_PARSE = """
import argparse, runpy, shlex, sys

class Parsed(BaseException):
    pass

parse = argparse.ArgumentParser.parse_args

def stop(parser, *arguments):
    parse(parser, *arguments)
    raise Parsed

argparse.ArgumentParser.parse_args = stop
for line in sys.stdin:
    module, *arguments = shlex.split(line)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__")
        sys.exit(f"{module} takes no arguments")
    except Parsed:
        pass
"""


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


@cache
def commands() -> tuple[str, ...]:
    """Every command of README and docs, once, in the order in which they stand: of blocks, and within sentences."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        inline = _INLINE.findall(_BLOCK.sub("", text))
        for line in [*(line for block in blocks(page, "sh") for line in block.splitlines()), *inline]:
            for command in line.split(" && "):
                if command and not _PLACEHOLDER.search(command):
                    found[command.replace(".venv/bin/", "").replace(".venv-tests/bin/", "")] = None
    return tuple(found)


def beginning(*heads: str) -> Iterator[list[str]]:
    for command in commands():
        if command.startswith(heads):
            yield shlex.split(command)


def _python(arguments: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def test_readme_is_short_and_names_every_page():
    text = PAGES[0].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    assert [name for name in QUESTIONS if f"(docs/{name}.md)" not in text] == []
    assert {page.stem for page in PAGES[1:]} == set(QUESTIONS)
    # Who has a function sees on the first screen how to call it, without scrolling past a picture.
    assert 0 < text.find("mapbench.compare(") < text.index("![")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_to_a_file(page: Path):
    links = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []


def test_every_picture_is_shown():
    shown = {Path(link).name for page in PAGES for link in _LINK.findall(page.read_text(encoding="utf-8"))}
    assert {path.name for path in (ROOT / "docs/pictures").iterdir()} <= shown


def test_every_command_is_of_a_kind_that_is_run():
    heads = ("python -m measure", "python -m tests.", "python -m pytest", "bash tests/run")
    heads += ("streamlit run", "MAPBENCH_HOME=/tmp/mapbench streamlit run app.py", "python3 -m venv .venv")
    heads += ("pip install -r requirements.txt", "pip install -r requirements-cpu.txt")
    assert [command for command in commands() if not command.startswith(heads)] == []


def test_what_installs_needs_nothing_more_than_the_tests_have(tmp_path: Path):
    done = _python(["-m", "pip", "install", "--dry-run", "--quiet", "-r", str(ROOT / "requirements.txt")], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Would install" not in done.stdout


def test_benchmarks_take_the_arguments_that_the_docs_give():
    lines = "\n".join(
        shlex.join(words[2:]) for words in beginning("python -m tests.") if words[2] != "tests.screenshots"
    )
    done = subprocess.run(
        [sys.executable, "-c", _PARSE], input=lines, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr


def test_every_setting_is_in_the_docs():
    tops = ("measure", "strategies", "views", "workloads")
    sources = [ROOT / "app.py", *(path for top in tops for path in (ROOT / top).rglob("*.py"))]
    named = {name for path in sources for name in re.findall(r"\bMAPBENCH_[A-Z_]+[A-Z]\b", path.read_text("utf-8"))}
    named -= {"MAPBENCH_FAMILY"}  # by which processes find their own, and no setting
    named |= {f"MAPBENCH_{field.name.upper()}" for field in fields(Limits)}
    text = "".join((ROOT / "docs" / page).read_text("utf-8") for page in ("using.md", "hosting.md"))
    assert sorted(name for name in named if f"`{name}" not in text) == []
    said = set(re.findall(r"\bMAPBENCH_\w+", "".join(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))))
    assert said <= named | {"MAPBENCH_BROWSER", "MAPBENCH_VENV", "MAPBENCH_SHOTS"}, "a setting that nobody reads"


def test_pictures_that_the_docs_have_taken_are_known():
    from tests import screenshots

    asked = {name for words in beginning("python -m tests.screenshots") for name in words[3:]}
    assert asked and asked <= set(screenshots.PICTURES)


def test_single_tests_are_where_the_docs_say():
    asked = [words[3:] for words in beginning("python -m pytest")]
    assert asked
    for words in asked:
        places, _, part = " ".join(words).partition(" -k ")
        files = [file for place in places.split() for file in (ROOT / place).rglob("test_*.py")]
        tests = [name for file in files for name in re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8"))]
        assert [name for name in tests if part in name], words


@pytest.fixture
def command_line(host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """``python -m measure`` in this process, on a host that is there: nothing imports TensorFlow anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(workloads.VARIABLE, "")  # a command that is given a file adds it for its process
    for known in ("_known", "_workloads"):  # functions that are given become workloads of the process
        monkeypatch.setattr(functions, known, {})
    monkeypatch.setattr(runner, "launcher", lambda *_: Lent(host))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield main
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_measuring_commands_run(
    command_line: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As they stand but for the time budget and, where none are named, the strategies; with the probes of the limit for
    one of them alone. Those that read a run file come after those that write it."""
    extending, own_code = (blocks(ROOT / "docs" / page, "python") for page in ("extending.md", "command-line.md"))
    for name, source in (("my_workload.py", extending[0]), ("slope.py", extending[1]), ("my_code.py", own_code[0])):
        (tmp_path / name).write_text(source, encoding="utf-8")
    printed = {}
    briefly = partial(Settings, probes=False, process_peaks_s=0.0)
    for words in sorted(beginning("python -m measure"), key=lambda words: words[3] == "export"):
        # The limit is in the example's table.
        monkeypatch.setattr(runner, "Settings", Settings if words == readme_command() else briefly)
        # Of two budgets, the last one counts.
        arguments = [*words[3:], "--budget", "1"] if words[3] in ("compare", "sweep") else words[3:]
        if words[3] == "compare" and "--strategies" not in words:
            arguments += ["--strategies", "map_fn.graph,batched.graph"]
        assert command_line(arguments) == 0, (words, capsys.readouterr().err)
        printed[tuple(words)] = capsys.readouterr().out
        assert printed[tuple(words)].strip(), words
    _looks_like_the_example(printed[tuple(readme_command())])


def readme_command() -> list[str]:
    lines = [line for block in blocks(PAGES[0], "sh") for line in block.splitlines()]
    return next(shlex.split(line) for line in lines if line.startswith("python -m measure"))


def _looks_like_the_example(printed: str) -> None:
    """The table in README has the columns and the strategies of what the command prints."""
    (example,) = blocks(PAGES[0], "text")

    def table(text: str) -> tuple[list[str], set[str]]:
        head, *rows = text.split("\n\n")[0].splitlines()
        return re.split(r"\s{2,}", head.strip()), {row.split()[1] for row in rows}

    assert table(printed) == table(example)


def test_the_example_in_python_runs(command_line: Callable[..., int], monkeypatch: pytest.MonkeyPatch):
    """As it stands but for the time budgets; TensorFlow is not called here, only imported."""
    (example,) = blocks(ROOT / "docs/using.md", "python")
    monkeypatch.setattr(runner, "Settings", partial(Settings, probes=False, process_peaks_s=0.0))
    file = "<example>"
    linecache.cache[file] = (len(example), None, example.splitlines(keepends=True), file)
    space: dict[str, object] = {"__name__": "__main__"}
    exec(compile(re.sub(r"budget=\d+", "budget=2", example), file, "exec"), space)
    result, swept = space["result"], space["swept"]
    assert isinstance(result, Result) and isinstance(swept, SweepResult)
    assert result.leader in set(result.table["strategy"])
    assert "def standardize(image):" in result.code("map_fn.graph")


def test_the_app_starts_as_the_docs_say(start_app):
    start_app()  # streamlit run app.py


def test_every_column_of_the_table_is_explained():
    explained = (ROOT / "docs/using.md").read_text(encoding="utf-8")
    heads = {head for column in COLUMNS for head in (column.page, column.text) if head}
    assert sorted(head for head in heads if f"| {head} |" not in explained) == []
