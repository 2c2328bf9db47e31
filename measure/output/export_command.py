"""`python -m measure export`: a run file, or a run of the store, in other forms."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from measure.output import export
from measure.run import why
from measure.run.encoding import encode
from measure.run.place import is_id
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store import imports
from measure.store.store import Store

_STDOUT = "-"
_UNSAFE = re.compile(r"[^\w.]+", re.ASCII)
# Option → the ending of its file, and its help. Of these one can go to stdout.
_TEXTS = {
    "json": (".json", "the run file"),
    "csv": (".csv", "the table, one line for each strategy"),
    "samples": (".samples.csv", "every raw sample, as CSV"),
    "markdown": (".md", "a summary for a pull request"),
}
_PICTURES = {"svg": "each chart as SVG", "png": "each chart as PNG"}
# Option → the file that an explanation has left of each strategy, which is in the store and not in a run's file.
_LEFT = {
    "graph": (why.GRAPH, "the graph of each strategy that was explained"),
    "hlo": (why.HLO, "XLA's program of each strategy that was explained"),
    "trace": (why.TRACE, "the trace of a call of each, for ui.perfetto.dev"),
}


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run file, or the id of a run that is kept")
    helps = {name: text for name, (_, text) in _TEXTS.items()} | _PICTURES
    for name, text in (helps | {name: text for name, (_, text) in _LEFT.items()}).items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--link", metavar="URL", help="where the run can be opened, for the summary")
    parser.add_argument(
        "--into", default=".", metavar="FOLDER", help="where the files go (the current folder); '-' for stdout"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write what is asked for, and say on stdout which files there are. Raises RequestError with one sentence."""
    texts, pictures, explained = (
        [name for name in of if getattr(arguments, name)] for of in (_TEXTS, _PICTURES, _LEFT)
    )
    if not texts and not pictures and not explained:
        options = ", ".join(f"--{name}" for name in (*_TEXTS, *_PICTURES, *_LEFT))
        raise RequestError(f"nothing is chosen to be written: name at least one of {options}")
    if arguments.into == _STDOUT and (pictures or explained or len(texts) > 1):
        raise RequestError("--into - writes one of --json, --csv, --samples and --markdown, and only one")
    exported = _read(arguments.run)
    if pictures and exported.kind == "claims":
        raise RequestError("a run of claims has no charts: --markdown and --csv write its verdicts")
    if arguments.into == _STDOUT:
        sys.stdout.buffer.writelines(part.encode() for part in _parts(exported, texts[0], arguments.link))
        return 0
    folder, name = Path(arguments.into), Path(arguments.run).stem
    files: dict[str, Iterable[bytes]] = {
        f"{name}{_TEXTS[option][0]}": (part.encode() for part in _parts(exported, option, arguments.link))
        for option in texts
    }
    for option in explained:
        for slug, content in _artifacts(exported, _LEFT[option][0]).items():
            # On every system, as ``map_fn.graph-parallel_iterations-1``.
            files[f"{name}.{_UNSAFE.sub('-', slug)}.{_LEFT[option][0]}"] = [content]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, parts in files.items():
            with (folder / file_name).open("wb") as file:
                file.writelines(parts)
            print(folder / file_name)
    except OSError as error:
        raise RequestError(f"{folder} cannot be written into: {error.strerror}") from None
    try:
        for path in export.figures(exported, pictures, folder, name) if pictures else ():
            print(path)
    except RuntimeError as error:
        raise RequestError(f"{name}: {error}") from None
    return 0


def kept(run_id: str) -> Run:
    """A run of the store. Raises RequestError where it is not there."""
    stored = Store().load(run_id) if is_id(run_id) else None
    if stored is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    return stored


def _parts(exported: Run, option: str, link: str | None) -> Iterator[str]:
    if option == "json":
        yield f"{encode(exported).decode()}\n"
    elif option == "markdown":
        yield export.markdown(exported, link)
    else:
        yield from export.table_csv(exported) if option == "csv" else export.samples_csv(exported)


def _artifacts(exported: Run, name: str) -> dict[str, bytes]:
    """The files of a name that explanations have left, by strategy. Raises RequestError where there is none."""
    store = Store()
    by_slug = {item.strategy: store.artifact(exported.id, item.strategy, name) for item in exported.measurements}
    contents = {slug: content for slug, content in by_slug.items() if content is not None}
    if not contents:
        raise RequestError(
            f"no {name} of run {exported.id} is kept here: 'compare --why' and the tab «Why» leave them in the store "
            "of the machine that measured"
        )
    return contents


def _read(name: str) -> Run:
    if is_id(name):
        return kept(name)
    try:
        with open(name, "rb") as file:
            return imports.read(file.read(imports.MOST_BYTES + 1))
    except OSError as error:
        raise RequestError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RequestError(f"{name} cannot be exported: {error}") from None
