"""The run files of chosen runs: one as it is, several in an archive."""

import io
import zipfile
from collections.abc import Sequence

from measure import runner
from measure.model.place import StoreError
from measure.model.run_file import encode

# In an archive: the text that names the runs which are not in it.
_LEFT_OUT = "left out.txt"


def pack(ids: Sequence[str]) -> bytes:
    """Return the run files of these runs. A run that cannot be read is left out, and a text in the file says so."""
    store = runner.shared().store
    files, left_out = {}, []
    for run_id in ids:
        try:
            run = store.load(run_id)
        except (ValueError, StoreError) as error:
            left_out.append(f"Run {run_id} cannot be read: {error}.")
            continue
        if run is None:
            left_out.append(f"Run {run_id} has been deleted.")
        else:
            files[f"mapbench-{run_id}.json"] = encode(run)
    if len(ids) == 1 and files:
        return next(iter(files.values()))
    if len(ids) == 1:
        return "\n".join(left_out).encode()
    if left_out:
        files[_LEFT_OUT] = "\n".join([*left_out, ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()
