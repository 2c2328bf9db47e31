"""The run files of chosen runs: one as it is, several in an archive."""

import io
import zipfile
from collections.abc import Sequence

from measure import runner
from measure.model.place import StoreError
from measure.model.run_file import encode
from views.result import texts


def pack(ids: Sequence[str]) -> bytes:
    """Return the run files of these runs. A run that cannot be read is left out, and a text in the file says so."""
    store = runner.shared().store
    files, left_out = {}, []
    for run_id in ids:
        try:
            run = store.load(run_id)
        except (ValueError, StoreError) as error:
            left_out.append(texts.UNREADABLE.format(run=run_id, error=error))
            continue
        if run is None:
            left_out.append(texts.DELETED.format(run=run_id))
        else:
            files[f"mapbench-{run_id}.json"] = encode(run)
    if len(ids) == 1 and files:
        return next(iter(files.values()))
    if len(ids) == 1:
        return "\n".join(left_out).encode()
    if left_out:
        files[texts.LEFT_OUT_FILE] = "\n".join([*left_out, ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()
