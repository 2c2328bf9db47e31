"""The newest run on each claim: the last that has all figures that the claim needs, else the last that has some."""

import itertools
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from measure import runner
from measure.claims import verdicts
from measure.claims.spec import Claim
from measure.claims.tries import WORKLOAD
from measure.model.run import Evidence, Run
from measure.store.entries import RUNNING, Entry, Query
from views.pages import opening
from views.ui.memo import Memo
from workloads import places

_PAGE = 50
# Runs that are looked through. Few are, where a recent one has tried all claims.
_MOST_READ = 200
_outlines = Memo(__name__)
_NOTHING, _SOME, _ALL = range(3)


def entries() -> Iterator[Entry]:
    """The runs of claims that are kept, the newest first. Raises `StoreError`."""
    for first in itertools.count(0, _PAGE):
        page = runner.shared().store.entries(Query("", WORKLOAD), first, _PAGE)
        yield from page
        if len(page) < _PAGE:
            return


def on_each(claims: Sequence[Claim]) -> dict[str, Run]:
    """The newest run on each claim, by its id; a claim on which there is none is left out. A run from elsewhere tells
    of another machine: it counts only on a server that shows runs and measures none. Raises `StoreError`."""
    needed = {claim.id: _keys(claim) for claim in claims}
    found: dict[str, tuple[int, str]] = {}
    here = (entry for entry in entries() if places.viewer() or not entry.imported)
    for entry in itertools.islice(here, _MOST_READ):
        sought = [claim for claim in claims if found.get(claim.id, (_NOTHING, ""))[0] < _ALL]
        if not sought:
            break
        if (outline := _outline(entry)) is None:
            continue
        there = {item.need for item in outline.evidence or []}
        for claim in sought:
            worth = _worth(claim, needed[claim.id], outline, there)
            if worth > found.get(claim.id, (_NOTHING, ""))[0]:
                found[claim.id] = worth, entry.id
    runs = {run_id: load(run_id) for run_id in dict.fromkeys(run_id for _, run_id in found.values())}
    return {claim_id: run for claim_id, (_, run_id) in found.items() if (run := runs[run_id]) is not None}


def tells_of(claim: Claim, run: Run) -> bool:
    """True if a run has figures that the claim needs, or shows that it cannot be tried on that machine."""
    return _worth(claim, _keys(claim), run, {item.need for item in run.evidence or []}) > _NOTHING


def load(run_id: str) -> Run | None:
    """The run of an entry, where it has evidence and can be read."""
    snapshot, _ = opening.find(run_id)
    return snapshot.run if snapshot is not None and snapshot.run.evidence else None


def _outline(entry: Entry) -> Run | None:
    """A run without its figures. Of one that has ended it is remembered: all are looked through at every interaction,
    and hardly any is shown."""
    return _bare(entry.id) if entry.status == RUNNING else _outlines.get(entry, lambda: _bare(entry.id))


def _bare(run_id: str) -> Run | None:
    run = load(run_id)
    return None if run is None else replace(run, evidence=[Evidence(need=item.need) for item in run.evidence or []])


def _keys(claim: Claim) -> frozenset[str]:
    return frozenset(need.key for need in claim.needs)


def _worth(claim: Claim, needed: frozenset[str], run: Run, there: Collection[str]) -> int:
    """The worth of a run to a claim. While it goes on it tells only of claims whose figures are all there."""
    lacks = bool(verdicts.lacking(claim, run.environment))
    if not lacks and needed.issubset(there):
        return _ALL
    if run.finished is None:
        return _NOTHING
    # What a machine lacks is the answer of its run only where nothing was measured on another day.
    return _SOME if not needed.isdisjoint(there) or (lacks and claim.id in (run.claims or ())) else _NOTHING
