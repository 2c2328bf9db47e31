"""`python -m measure export` and `report`: a run file, or a run of the store, in other forms."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from measure.output import export
from measure.run import place, why
from measure.run.encoding import encode
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store import imports
from measure.store.store import Store

_STDOUT = "-"
_UNSAFE = re.compile(r"[^\w.]+", re.ASCII)
# Option → the ending of its file, its help, and its parts, of a run and a link. Of these one can go to stdout.
_TEXTS: dict[str, tuple[str, str, Callable[[Run, str | None], Iterable[str]]]] = {
    "json": (".json", "the run file", lambda run, link: [f"{encode(run).decode()}\n"]),
    "csv": (".csv", "the table, one line for each strategy", lambda run, link: export.table_csv(run)),
    "samples": (".samples.csv", "every raw sample, as CSV", lambda run, link: export.samples_csv(run)),
    "markdown": (".md", "a summary for a pull request", lambda run, link: [export.markdown(run, link)]),
}
_PICTURES = {"svg": "each chart as SVG", "png": "each chart as PNG"}
# Option → the file that an explanation has left of each strategy, which is in the store and not in a run's file.
_LEFT = {
    "graph": (why.GRAPH, "the graph of each strategy that was explained"),
    "hlo": (why.HLO, "XLA's program of each strategy that was explained"),
    "trace": (why.TRACE, "the trace of a call of each, for ui.perfetto.dev"),
}
_HELP = {name: of[1] for name, of in _TEXTS.items()} | _PICTURES | {name: of[1] for name, of in _LEFT.items()}


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run file, or the id of a run that is kept")
    for name, about in _HELP.items():
        parser.add_argument(f"--{name}", action="store_true", help=about)
    parser.add_argument("--link", metavar="URL", help="where the run can be opened, for the summary")
    parser.add_argument(
        "--into", default=".", metavar="FOLDER", help="where the files go (the current folder); '-' for stdout"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write what is asked for, and say on stdout which files there are. Raises RequestError with one sentence."""
    texts, pictures, left = ([name for name in of if getattr(arguments, name)] for of in (_TEXTS, _PICTURES, _LEFT))
    if not texts and not pictures and not left:
        options = ", ".join(f"--{name}" for name in _HELP)
        raise RequestError(f"nothing is chosen to be written: name at least one of {options}")
    if arguments.into == _STDOUT and (pictures or left or len(texts) > 1):
        raise RequestError("--into - writes one of --json, --csv, --samples and --markdown, and only one")
    exported = read(arguments.run)
    if pictures and exported.kind == "claims":
        raise RequestError("a run of claims has no charts: --markdown and --csv write its verdicts")
    written = {
        _TEXTS[option][0]: (part.encode() for part in _TEXTS[option][2](exported, arguments.link)) for option in texts
    }
    if arguments.into == _STDOUT:
        sys.stdout.buffer.writelines(written.popitem()[1])
        return 0
    folder, name = Path(arguments.into), Path(arguments.run).stem
    files: dict[str, Iterable[bytes]] = {f"{name}{ending}": parts for ending, parts in written.items()}
    for option in left:
        files |= {f"{name}.{end}": [content] for end, content in _artifacts(exported, _LEFT[option][0]).items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, parts in files.items():
            place.write(folder / file_name, parts)
            print(folder / file_name)
    except OSError as error:
        raise RequestError(f"{folder} cannot be written into: {error.strerror}") from None
    try:
        for path in export.figures(exported, pictures, folder, name) if pictures else ():
            print(path)
    except RuntimeError as error:
        raise RequestError(f"{name}: {error}") from None
    return 0


def add_report_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run file, a report, or the id of a run that is kept")
    parser.add_argument("--out", required=True, metavar="FILE.html", help="where the report goes; '-' for stdout")


def report(arguments: argparse.Namespace) -> int:
    """Write a report of runs. Raises RequestError with one sentence."""
    runs = [run for name in arguments.runs for run in read_all(name)]
    if len(runs) > imports.MOST_RUNS:
        raise RequestError(f"{len(runs)} runs are too many: a report holds at most {imports.MOST_RUNS}")
    try:
        made = export.report(list({run.id: run for run in runs}.values()))
        if arguments.out == _STDOUT:
            sys.stdout.buffer.write(made)
        else:
            place.write(Path(arguments.out), [made])
            print(arguments.out)
    except OSError as error:
        raise RequestError(f"--out {arguments.out} cannot be written: {error.strerror}") from None
    except RuntimeError as error:
        raise RequestError(str(error)) from None
    return 0


def kept(run_id: str) -> Run:
    """A run of the store. Raises RequestError where it is not there."""
    stored = Store().load(run_id) if place.is_id(run_id) else None
    if stored is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    return stored


def _artifacts(exported: Run, name: str) -> dict[str, bytes]:
    """The files of a name that explanations have left, by the strategy's slug as a name on every system
    (``map_fn.graph-parallel_iterations-1``). Raises RequestError where there is none."""
    store, contents = Store(), dict[str, bytes]()
    for item in exported.measurements:
        if (content := store.artifact(exported.id, item.strategy, name)) is not None:
            contents[f"{_UNSAFE.sub('-', item.strategy)}.{name}"] = content
    if not contents:
        raise RequestError(
            f"no {name} of run {exported.id} is kept here: 'compare --why' and the tab «Why» leave them in the store "
            "of the machine that measured"
        )
    return contents


def read(name: str) -> Run:
    """The run in a file, or the one of an id. Raises RequestError with one sentence."""
    run, *others = read_all(name)
    if others:
        raise RequestError(
            f"{name} holds {1 + len(others)} runs, and one is needed: import it, and name a run by its id"
        )
    return run


def read_all(name: str) -> list[Run]:
    """The run in a file or those in a report, or the one of an id. Raises as `read` does."""
    if place.is_id(name):
        return [kept(name)]
    try:
        with open(name, "rb") as file:
            return imports.read_all(file.read(imports.MOST_BYTES + 1))
    except (OSError, ValueError) as error:
        raise RequestError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
