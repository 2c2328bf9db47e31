"""A run as a file: its address beside a page, and the writing of it, part by part.

Streamlit's own downloads are built in memory and held there. Here the server writes a file and sends it
(`views/pages/server.py`), and pages hold nothing but an address.
"""

import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import urlencode

from measure import client
from measure.output import export
from measure.run.encoding import encode
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store import imports
from views.result import lookup
from views.ui import look
from workloads import places

FIGURES, REPORT = "figures.zip", "html"
# What is drawn for it is drawn by a process of its own, which is too large for a viewer.
DRAWN = (FIGURES, REPORT)
# An archive of runs ends here: what is left out is said in it.
_MOST_PACKED = 256 * 2**20
# A link in a summary: anything else that an address brings along stays out of it.
_LINK = re.compile(r"https?://[\w.:\[\]/~%?=&+-]{1,500}", re.ASCII)


def of_run(run_id: str, ending: str, **query: str) -> str:
    """The address of a run's file, as seen from a page."""
    return f"export/{run_id}/{ending}" + (f"?{urlencode(query)}" if query else "")


def of_runs(ids: Sequence[str], ending: str = "zip") -> str:
    """The address of the run files of these runs, one as it is, several in an archive; or of their report."""
    if len(ids) == 1:
        return of_run(ids[0], "json" if ending == "zip" else ending)
    return f"export/runs.{ending}?{urlencode({'run': ids}, doseq=True)}"


def is_sampling() -> bool:
    """True while the run that is measured samples latencies: nothing that can wait may keep a processor busy then."""
    going_on = client.shared().going_on()
    return going_on is not None and going_on.round_number is not None


def offers(run: Run, ending: str) -> bool:
    """True if a run is to be had in the file that its address ends with: the charts of claims are their evidence's."""
    return ending not in DRAWN or not (places.viewer() or (ending == FIGURES and run.kind == "claims"))


def write(run: Run, ending: str, query: Mapping[str, str], file: IO[bytes]) -> str:
    """Write the file of a run that an address ends with, and return its name. Raises `RequestError` where there is no
    such file, and RuntimeError where what has to be drawn cannot be."""
    if ending == "json":
        file.write(encode(run))
    elif ending == "csv":
        file.writelines(part.encode() for part in export.table_csv(run))
    elif ending == "samples.csv":
        file.writelines(part.encode() for part in export.samples_csv(run))
    elif ending == "md":
        link = query.get("link", "")
        file.write(export.markdown(run, link if _LINK.fullmatch(link) else None).encode())
    elif ending == REPORT and offers(run, ending):
        export.report([run], file)
    elif ending == FIGURES and offers(run, ending):
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in export.figures(run, ("svg", "png"), Path(folder), f"mapbench-{run.id}"):
                packed.write(path, path.name)
    else:
        slug, kind = query.get("strategy", ""), query.get("name", "")
        content = client.shared().store.artifact(run.id, slug, kind) if ending == "artifact" else None
        if content is None:
            raise RequestError(f"run {run.id} has no such file")
        file.write(content)
        return f"{look.key(slug)}.{kind}"
    return f"mapbench-{run.id}.{ending}"


def report(ids: Sequence[str], most_bytes: int, file: IO[bytes]) -> str:
    """Write one report of runs whose files have so many bytes at most, and return its name. Raises as `write` does."""
    if places.viewer() or not 1 <= len(ids) <= imports.MOST_RUNS:
        raise RequestError(f"a report holds 1 to {imports.MOST_RUNS} runs, and a viewer makes none")
    runs, size = list[Run](), 0
    for run_id in ids:
        runs.append(lookup.find(run_id).run)
        size += len(encode(runs[-1]))
        if size > most_bytes:
            most = look.size(most_bytes)
            raise RequestError(f"these runs take more than the {most} that a report may have: choose fewer")
    export.report(runs, file)
    return f"mapbench-runs.{REPORT}"


def archive(ids: Sequence[str], file: IO[bytes]) -> str:
    """Write the archive of run files, and return its name. A run that cannot be read is left out, and a text in the
    archive says so."""
    left_out = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for run_id in ids:
            try:
                if file.tell() >= _MOST_PACKED:
                    raise ValueError(f"the archive has {look.size(_MOST_PACKED)} without it, export fewer at a time")
                if (run := client.shared().store.load(run_id)) is None:
                    raise ValueError("it has been deleted")
                packed.writestr(f"mapbench-{run_id}.json", encode(run))
            except (ValueError, StoreError) as error:
                left_out.append(f"Run {run_id} is left out: {error}.\n")
        if left_out:
            packed.writestr("left out.txt", "".join(left_out))
    return "mapbench-runs.zip"
