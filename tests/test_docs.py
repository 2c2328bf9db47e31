"""README and docs: every link leads somewhere, every command is one that its program takes."""

import argparse
import importlib
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from streamlit import config

from measure import local
from measure.__main__ import main
from measure.arguments import compare_request, given, parser, sweep_request
from measure.output.table import COLUMNS
from tests.browser import ROOT
from tests.subjects import Subjects

README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))
# A comment before a block says that its commands are executed here.
_BLOCK = re.compile(r"^(<!-- executed -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:python|bash|streamlit) [^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Stands for what a reader fills in: such a line shows a form, not a command.
_PLACEHOLDER = re.compile(r"\b(RUN|FILE|FOLDER|ID|URL)\b")
_INSTALL = re.compile(r"pip install -r ([\w/]*requirements\S*\.txt)")
_SERVE = re.compile(r"(?:MAPBENCH_\w+=\S+ )?streamlit run app\.py((?: --\S+ \S+)*)")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str, *, executed: bool = False) -> list[str]:
    found = [(mark, text) for mark, kind, text in _BLOCK.findall(read(page)) if kind == language]
    return [text for mark, text in found if mark or not executed]


@cache
def commands() -> tuple[str, ...]:
    """Every command of README and docs, once: of blocks, and within sentences."""
    found = set()
    for page in PAGES:
        inline = _INLINE.findall(_BLOCK.sub("", read(page)))
        for line in [*(line for block in blocks(page, "sh") for line in block.splitlines()), *inline]:
            found |= {command.replace(".venv/bin/", "") for command in line.split(" && ")}
    return tuple(sorted(command for command in found if command and not _PLACEHOLDER.search(command)))


def beginning(head: str) -> Iterator[list[str]]:
    """The words behind this beginning of each command that has it."""
    return (shlex.split(command.removeprefix(head)) for command in commands() if command.startswith(head))


def test_every_link_leads_to_a_file_and_every_page_and_picture_is_shown() -> None:
    links = {page: [link for link in _LINK.findall(read(page)) if "://" not in link] for page in PAGES}
    files = {page: {(page.parent / link.partition("#")[0]).resolve() for link in links[page]} for page in PAGES}
    assert [path for page in PAGES for path in files[page] if not path.exists()] == []
    assert set(PAGES[1:]) <= files[README]
    assert set((ROOT / "docs/pictures").iterdir()) <= set().union(*files.values())


def test_the_measuring_commands_are_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    code, *_ = blocks(ROOT / "docs/command-line.md", "python")
    Path("my_code.py").write_text(code, encoding="utf-8")
    kinds = set()
    for words in beginning("python -m measure "):
        arguments = parser().parse_args(words)
        kinds.add(arguments.command)
        if arguments.command in ("compare", "sweep") and not arguments.workload_file:
            request = compare_request if arguments.command == "compare" else sweep_request
            assert given(arguments) or request(arguments), words
    assert {"claims", "compare", "export", "list", "sweep"} <= kinds


def test_every_other_command_is_one_that_its_program_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    parse_args = argparse.ArgumentParser.parse_args

    def stop(own: argparse.ArgumentParser) -> None:
        parse_args(own)
        raise InterruptedError("the arguments are read")

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    for module, *words in beginning("python -m tests."):
        program = importlib.import_module(f"tests.{module}")
        if module == "screenshots":
            assert set(words) <= set(program.PICTURES)
            continue
        monkeypatch.setattr(sys, "argv", [module, *words])
        with pytest.raises(InterruptedError):
            program.main()
    for words in (*beginning("bash tests/run"), *beginning("python -m pytest")):
        places, _, part = " ".join(words).partition(" -k ")
        files = [file for place in places.split() for file in (ROOT / place).rglob("test_*.py")]
        named = [name for file in files for name in re.findall(r"def (test_\w+)", file.name + read(file))]
        assert not words or [name for name in named if part in name], words
    heads = (
        "python -m measure ",
        "mapbench worker ",
        "dask scheduler ",
        "pip install '.[machines]'",
        "python -m tests.",
        "python -m pytest ",
        "bash tests/run",
        "python3 -m venv ",
    )
    for command in commands():
        if match := _INSTALL.fullmatch(command):
            assert (ROOT / match[1]).is_file()
        elif match := _SERVE.fullmatch(command):
            assert {word.strip("-") for word in match[1].split()[::2]} <= set(config.get_config_options())
        else:
            assert command.startswith(heads), command


def test_commands_that_are_marked_end_as_the_docs_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On simulated subjects: what they print has the columns and the strategies of the example below them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "launcher", lambda *_: Subjects())
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    printed = []
    try:
        for block in (block for page in PAGES for block in blocks(page, "sh", executed=True)):
            for line in block.splitlines():
                assert main(shlex.split(line.removeprefix("python -m measure "))) == 0, line
                printed.append(capsys.readouterr().out)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def table(text: str) -> tuple[list[str], set[str]]:
        head, *rows = text.split("\n\n")[0].splitlines()
        return re.split(r"\s{2,}", head.strip()), {row.split()[1] for row in rows}

    (example,) = blocks(README, "text")
    assert [table(text) for text in printed] == [table(example)]


def test_every_column_of_the_table_is_explained() -> None:
    explained = read(ROOT / "docs/using.md")
    heads = {head for column in COLUMNS for head in (column.page, column.text) if head}
    assert sorted(head for head in heads if f"| {head} |" not in explained) == []
