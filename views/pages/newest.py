"""The newest run on each claim: the last that has all figures that the claim needs."""

from measure import client
from measure.claims import known, verdicts
from measure.claims.tries import WORKLOAD
from measure.run.run import Run
from measure.store.entries import RUNNING, Entry, Query
from views.pages import opening
from views.ui.memo import Memo
from workloads import places

# Runs that are looked through. Few are, where a recent one has tried all claims.
_MOST_READ = 200
_outlines = Memo(__name__)


def on_each() -> dict[str, Run]:
    """The newest run on each claim, by its id; a claim on which there is none is left out. A run from elsewhere tells
    of another machine: it counts only on a server that shows runs and measures none. Raises `StoreError`."""
    newest: dict[str, str] = {}
    for entry in client.shared().store.entries(Query("", WORKLOAD), 0, _MOST_READ):
        if places.viewer() or not entry.imported:
            newest = dict.fromkeys(_claims_of(entry), entry.id) | newest
        if len(newest) == len(known.all_claims()):
            break
    runs = {run_id: run for run_id in set(newest.values()) if (run := _load(run_id)) is not None}
    return {claim_id: runs[run_id] for claim_id, run_id in newest.items() if run_id in runs}


def _claims_of(entry: Entry) -> frozenset[str]:
    """The ids of the claims that a run tells of. Of one that has ended they are remembered: all runs are looked through
    at every interaction, and hardly any is shown."""

    def made() -> frozenset[str]:
        run = _load(entry.id)
        return frozenset(claim.id for claim in known.all_claims() if run and verdicts.tells_of(claim, run))

    return made() if entry.status == RUNNING else _outlines.get(entry, made)


def _load(run_id: str) -> Run | None:
    snapshot, _ = opening.find(run_id)
    return snapshot.run if snapshot is not None else None
