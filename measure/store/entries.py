"""The list of runs: what it shows of each, and what it finds one by."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from measure.claims import verdicts
from measure.machine import environment
from measure.run import text
from measure.run.place import utc
from measure.run.run import Run
from measure.store import database
from measure.store.database import GOES_ON, MARKED, PINNED, runs

RUNNING = "running"
# Words that are searched for; each is looked for in all that is listed.
MOST_WORDS = 20
_SHOWN = database.SHOWN - 2  # signs before the two that say that more follows
_STATUS = sa.case((GOES_ON, RUNNING), else_=runs.c.status)


@dataclass(frozen=True)
class Entry:
    """A run in the list. ``status`` is the run's, or ``running``."""

    id: str
    created: str
    status: str
    workload: str
    size: str
    device: str
    machine: str
    verdict: str
    owner: str
    imported: bool
    pinned: bool
    kind: str  # empty of a run that was last written by an earlier version


@dataclass(frozen=True)
class Query:
    """A choice of runs: those that hold every word of ``text``, and match what else is named."""

    text: str = ""
    workload: str | None = None
    status: str | None = None
    device: str | None = None

    @property
    def words(self) -> list[str]:
        return list(dict.fromkeys(self.text.lower().replace("\0", " ").split()))


def select(query: Query) -> sa.Select[Any]:
    """The statement whose rows are entries, the newest first. Of many words it looks for the first `MOST_WORDS`."""
    columns = {**runs.c, "status": _STATUS, "pinned": PINNED}
    shown = [columns[field.name] for field in fields(Entry)]
    statement = sa.select(*shown).select_from(MARKED).order_by(runs.c.created.desc(), runs.c.id)
    for word in query.words[:MOST_WORDS]:
        statement = statement.where(runs.c.words.contains(word[: database.WORDS], autoescape=True))
    for column, value in ((runs.c.workload, query.workload), (_STATUS, query.status), (runs.c.device, query.device)):
        if value is not None:
            statement = statement.where(column == value)
    return statement


def row(run: Run) -> dict[str, Any]:
    """The columns that the list shows of a run, and finds it by."""
    request, decision = run.request, run.decision or None
    # A run of claims from elsewhere may say of itself what it likes: its verdicts are those of its figures.
    verdict = verdicts.summary(run) if run.kind == "claims" and run.finished else run.verdict
    shown = {
        "id": run.id,
        "created": utc(int(datetime.fromisoformat(run.created).timestamp() * 1000)),  # a form that sorts
        "status": run.status,
        "workload": request.title[: database.NAME],
        "size": text.shortened(_size(run), _SHOWN),
        "device": request.place[: database.NAME],
        "machine": text.shortened(environment.machine(run.environment), _SHOWN),
        "verdict": text.shortened(" · ".join(filter(None, (decision and decision.title, verdict))), _SHOWN),
    }
    words = (*shown.values(), request.dtype, run.kind, *(run.claims or ()))
    words += (decision.decision, decision.note, decision.by) if decision else ()
    columns = shown | {"kind": run.kind, "words": " ".join(words).lower()[: database.WORDS]}
    # Texts of PostgreSQL hold no such sign.
    return {name: text.replace("\0", " ") for name, text in columns.items()}


def _size(run: Run) -> str:
    """The ranges of a sweep and the sizes that are fixed, or the number of claims."""
    if run.kind == "claims":
        return text.counted(len(run.claims or ()), "claim")
    swept = {axis.name: f"{axis.values[0]:,} to {axis.values[-1]:,}" for axis in run.axes}
    fixed = {name: f"{value:,}" for name, value in run.request.size.items() if name not in swept}
    return ", ".join(f"{name} {values}" for name, values in {**swept, **fixed}.items())
