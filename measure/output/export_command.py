"""`python -m measure export`: a run file, or a run of the store, in other forms."""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from measure.output import export
from measure.run import why
from measure.run.encoding import encode
from measure.run.place import PROJECT, is_id
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store import imports

_STDOUT = "-"
# Charts belong to `views`, which nothing here may import: a process of its own draws them.
_DRAW = "views.charts.files"
_PICTURES = ("svg", "png")
# Option → the file that an explanation has left of each strategy, which is in the store and not in a run's file.
_LEFT = {"graph": why.GRAPH, "hlo": why.HLO, "trace": why.TRACE}


def _texts(link: str | None) -> dict[str, tuple[str, Callable[[Run], Iterable[str]]]]:
    """Option → the ending of its file, and the function that makes what is in it, in parts."""
    return {
        "json": (".json", lambda run: [encode(run).decode(), "\n"]),
        "csv": (".csv", export.table_csv),
        "samples": (".samples.csv", export.samples_csv),
        "markdown": (".md", lambda run: [export.markdown(run, link)]),
    }


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run file, or the id of a run that is kept")
    parser.add_argument("--json", action="store_true", help="the run file")
    parser.add_argument("--csv", action="store_true", help="the table, one line for each strategy")
    parser.add_argument("--samples", action="store_true", help="every raw sample, as CSV")
    parser.add_argument("--markdown", action="store_true", help="a summary for a pull request")
    parser.add_argument("--svg", action="store_true", help="each chart as SVG")
    parser.add_argument("--png", action="store_true", help="each chart as PNG")
    parser.add_argument("--graph", action="store_true", help="the graph of each strategy that was explained")
    parser.add_argument("--hlo", action="store_true", help="XLA's program of each strategy that was explained")
    parser.add_argument("--trace", action="store_true", help="the trace of a call of each, for ui.perfetto.dev")
    parser.add_argument("--link", metavar="URL", help="where the run can be opened, for the summary")
    parser.add_argument(
        "--into", default=".", metavar="FOLDER", help="where the files go (the current folder); '-' for stdout"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write what is asked for, and say on stdout which files there are. Raises RequestError with one sentence."""
    texts = _texts(arguments.link)
    forms = [name for name in texts if getattr(arguments, name)]
    pictures = [name for name in _PICTURES if getattr(arguments, name)]
    explained = [name for name in _LEFT if getattr(arguments, name)]
    if not forms and not pictures and not explained:
        options = ", ".join(f"--{name}" for name in (*texts, *_PICTURES, *_LEFT))
        raise RequestError(f"nothing is chosen to be written: name at least one of {options}")
    if arguments.into == _STDOUT and (pictures or explained or len(forms) > 1):
        raise RequestError("--into - writes one of --json, --csv, --samples and --markdown, and only one")
    exported = _read(arguments.run)
    if pictures and exported.kind == "claims":
        raise RequestError("a run of claims has no charts: --markdown and --csv write its verdicts")
    if arguments.into == _STDOUT:
        for part in texts[forms[0]][1](exported):
            sys.stdout.buffer.write(part.encode())
        return 0
    folder, name = Path(arguments.into), Path(arguments.run).stem
    files: dict[str, Iterable[bytes]] = {
        f"{name}{texts[form][0]}": (part.encode() for part in texts[form][1](exported)) for form in forms
    }
    for option in explained:
        for slug, content in _artifacts(exported, _LEFT[option]).items():
            # On every system, as ``map_fn.graph-parallel_iterations-1``.
            safe = re.sub(r"[^\w.]+", "-", slug, flags=re.ASCII)
            files[f"{name}.{safe}.{_LEFT[option]}"] = [content]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, parts in files.items():
            with (folder / file).open("wb") as written:
                written.writelines(parts)
            print(folder / file)
    except OSError as error:
        raise RequestError(f"{folder} cannot be written into: {error.strerror}") from None
    for picture in pictures:
        _draw(exported, picture, folder, name)
    return 0


def kept(run_id: str) -> Run:
    """A run of the store. Raises RequestError where it is not there."""
    from measure.store.store import Store

    run = Store().load(run_id) if is_id(run_id) else None
    if run is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    return run


def _artifacts(run: Run, name: str) -> dict[str, bytes]:
    """The files of a name that explanations have left, by strategy. Raises RequestError where there is none."""
    from measure.store.store import Store

    store = Store()
    by_slug = {item.strategy: store.artifact(run.id, item.strategy, name) for item in run.measurements}
    contents = {slug: content for slug, content in by_slug.items() if content is not None}
    if not contents:
        raise RequestError(
            f"no {name} of run {run.id} is kept here: 'compare --why' and the tab «Why» leave them in the store of "
            "the machine that measured"
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


def _draw(run: Run, form: str, folder: Path, name: str) -> None:
    """Write the charts of a run into a folder, in a process that may import the views."""
    command = [sys.executable, "-m", _DRAW, "all", form, "--into", str(folder.resolve()), "--name", name]
    done = subprocess.run(command, input=encode(run), stdout=subprocess.PIPE, cwd=PROJECT, check=False)
    print(done.stdout.decode(), end="")
    if done.returncode:
        raise RequestError(f"the charts of {name} could not be drawn")
