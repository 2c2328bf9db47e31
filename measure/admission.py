"""Admission to measuring: who may have how much of a server that strangers share. Rules, and what of them is used up.

Every way in asks here: buttons, links, imports and widgets all end in a request to the runner.
"""

import contextlib
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from time import monotonic

from measure.hosting import Limits
from measure.model.place import StoreError
from measure.model.request import Request, RequestError
from measure.sweep.request import SweepRequest
from measure.tally import Tally

# Addresses whose seconds of a day are remembered: a bound on memory. A day has no time for as many runs.
MOST_ADDRESSES = 50_000
# Runs that may answer an equal request.
_MOST_RECENT = 1_000
_DRAINED = "This server takes no new runs, since it is about to be restarted: come again in some minutes."


@dataclass(frozen=True)
class Visitor:
    """The one who asks. ``owner``: to whom runs belong; ``session``, ``address``: what they are counted by. A session
    that nothing tells from others of its address has that as its session, too."""

    owner: str = ""
    session: str = ""
    address: str = ""


# A command line, and whoever is at home.
NOBODY = Visitor()


@dataclass(frozen=True)
class Going:
    """A run that is measured or waits: whose it is, and the seconds that are left of it by its forecast. Within
    ``most_s`` it has ended in any case."""

    visitor: Visitor
    left_s: float
    most_s: float | None = None


def beyond(request: Request | SweepRequest, limits: Limits) -> str | None:
    """The sentence on the first limit that a request does not keep; None where it keeps them all."""
    swept = isinstance(request, SweepRequest)
    base = request.base if isinstance(request, SweepRequest) else request
    rules: tuple[tuple[str, float | None, float | None, str], ...] = (
        ("{:,} threads were asked for", base.threads, limits.most_threads, ""),
        ("a memory limit of {:,} MiB was asked for", base.memory_limit_mib, limits.memory_mib, " MiB"),
        ("{:,} strategies were chosen", len(base.strategies), limits.most_strategies, ""),
        ("a budget of {:.10g} s was asked for", base.budget_s, limits.sweep_s if swept else limits.budget_s, " s"),
    )
    for said, value, most, unit in rules:
        if value is not None and most is not None and value > most:
            return f"{said.format(value)}, and this server allows {most:,}{unit}"
    if isinstance(request, SweepRequest) and limits.most_cells is not None:
        cells = len(base.strategies) * math.prod(len(axis.values) for axis in request.axes)
        if cells > limits.most_cells:
            return f"the sweep has {cells:,} cells, strategies × points, and this server allows {limits.most_cells:,}"
    return None


class Admission:
    """The rules of one server, and the seconds that it has measured today. Safe to use from any thread."""

    def __init__(self, limits: Limits, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """``now``: the time of day in UTC."""
        self.limits = limits
        # Asked at each request, so that a server can be drained while it runs.
        self.is_drained: Callable[[], bool] = lambda: False
        self._now = now
        self._lock = threading.Lock()
        self._day = now().date()
        self._spent_s: dict[str, float] = {}
        self.tally = Tally()

    def refusal(self, visitor: Visitor, going: Sequence[Going], needed_s: float) -> str | None:
        """The sentence that says why a visitor can have no run of so many seconds now, and when to come again; None
        where it can have one. ``going``: the runs that are not finished, in their order."""
        if self.is_drained():
            return self.tally.refused("drained", _DRAINED)
        if visitor == NOBODY:
            return None
        limits = self.limits
        mine = [run for run in going if run.visitor.session == visitor.session != ""]
        neighbours = [run for run in going if run.visitor.address == visitor.address != ""]
        for reason, runs, most, whose in (
            ("session", mine, limits.session_runs, " of yours"),
            ("address", neighbours, limits.address_runs, " of your address"),
            ("queue", going, limits.queue_length, ""),
        ):
            if most is not None and len(runs) >= most:
                before = going[: going.index(runs[0]) + 1]
                count = "1 run" if len(runs) == 1 else f"{len(runs):,} runs"
                return self.tally.refused(
                    reason,
                    f"{count}{whose} {'is' if len(runs) == 1 else 'are'} going or waiting, and this server allows "
                    f"{most:,}: come again in about {_waiting(sum(run.left_s for run in before))}",
                )
        return self._day_refusal(visitor.address, sum(run.left_s for run in neighbours), needed_s)

    def spend(self, visitor: Visitor, seconds: float) -> None:
        """Count what was measured for a visitor."""
        self.tally.measured(seconds)
        if self.limits.address_day_s is None or not visitor.address:
            return
        with self._lock:
            self._begin_day()
            self._spent_s[visitor.address] = self._spent_s.get(visitor.address, 0.0) + seconds
            if len(self._spent_s) > MOST_ADDRESSES:
                del self._spent_s[min(self._spent_s, key=lambda address: self._spent_s[address])]

    def _day_refusal(self, address: str, promised_s: float, needed_s: float) -> str | None:
        most_s = self.limits.address_day_s
        if most_s is None:
            return None
        with self._lock:
            now = self._begin_day()
            left_s = max(0.0, most_s - self._spent_s.get(address, 0.0) - promised_s)
        if needed_s <= left_s:
            return None
        midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        return self.tally.refused(
            "day",
            f"this takes about {_waiting(needed_s)}, and of the {most_s:,} s that this server measures for an address "
            f"in a day {math.floor(left_s):,} s are left: come again after midnight UTC, in "
            f"{_waiting((midnight - now).total_seconds())}",
        )

    def _begin_day(self) -> datetime:
        """Forget what was measured on another day; the time of day."""
        now = self._now()
        if now.date() != self._day:
            self._day = now.date()
            self._spent_s.clear()
        return now


def _waiting(seconds: float) -> str:
    """A time to wait, rounded up: 40 s, 3 min, 3 h 20 min."""
    if seconds <= 90:
        return f"{max(1, math.ceil(seconds))} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def check_owner(owner: str, visitor: Visitor, what: str) -> None:
    """Raise `RequestError` where a run is not the visitor's to deal with."""
    if visitor != NOBODY and visitor.owner != owner:
        raise RequestError(f"only who started a run can {what}")


class Recent:
    """The runs that this process has measured completely of late, by what was asked: same machine, same code."""

    def __init__(
        self, within_s: float | None, is_kept: Callable[[str], bool], now: Callable[[], float] = monotonic
    ) -> None:
        """``within_s``: how old a run may be; None: none is told. ``is_kept``: true of the id of a run that can be
        shown. ``now``: a clock in seconds."""
        self._within_s, self._is_kept = within_s or 0.0, is_kept
        self._now = now
        self._known: deque[tuple[object, str, float]] = deque(maxlen=_MOST_RECENT)

    def note(self, asked: object, run_id: str) -> None:
        """Take down the run of a request that has just ended; an explanation is none that is asked for."""
        if asked is not None and self._within_s:
            self._known.append((asked, run_id, self._now()))

    def find(self, asked: object) -> str | None:
        """The id of the newest run of an equal request."""
        since = self._now() - self._within_s
        for what, run_id, at_s in reversed(tuple(self._known)):
            if at_s > since and what == asked:
                # Without a store that can be read it is measured anew.
                with contextlib.suppress(StoreError, ValueError):
                    return run_id if self._is_kept(run_id) else None
        return None
