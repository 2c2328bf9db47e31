"""A run while it waits and is measured: a fragment looks at it now and then, and draws its bar and what fills in."""

import contextlib
import time
from collections.abc import Callable

import streamlit as st

from measure import client
from measure.judge import answer
from measure.judge.findings import strategies_of
from measure.judge.lines import line_of
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run, Stage
from measure.store.store import Snapshot
from views.ui import guard, look, session

# Until something is timed a page may look often, and until a sweep has a line, which is what whoever has pressed Run
# waits for, more often still; then it would take from what is measured, and most of all where it is drawn anew.
_FIRST_POLL_S, _EAGER_POLL_S, _CALM_POLL_S, _CALM_REDRAW_S = 0.5, 1.0, 3.0, 30.0
_CANCEL_S = 1.5
OWN = "own_runs"  # of the session: the ids of the runs that it asked for
_ALMOST = 0.98  # a full bar would say that it is over
_MESSAGE_SIGNS = 60
_SAMPLED: tuple[Stage, ...] = ("sampling", "process peak", "done")
Draw = Callable[[Snapshot], None]


def watch(snapshot: Snapshot, answer_so_far: Draw | None = None, fill: Draw | None = None) -> None:
    """Draw the state of an unfinished run, and have the page run again when it must. ``answer_so_far`` and ``fill``
    draw what is known by now, which disturbs what is measured less than another run of the page."""
    every_s = poll_s(snapshot)
    st.fragment(_watch, run_every=every_s)(snapshot, answer_so_far, fill, time.monotonic(), every_s)


def poll_s(snapshot: Snapshot) -> float:
    """Return the seconds between two looks at a run."""
    if snapshot.run.kind == "sweep" and snapshot.state == "running" and not _has_line(snapshot.run):
        return _FIRST_POLL_S
    return _CALM_POLL_S if any(stage in _SAMPLED for stage in snapshot.stages.values()) else _EAGER_POLL_S


def _has_line(run: Run) -> bool:
    """True if a strategy has been timed at two points."""
    timed = [line_of(m.strategy, run.axes) for point in run.points for m in point.measurements if m.latency is not None]
    return len(timed) > len(set(timed))


def is_outdated(drawn: Snapshot, now: Snapshot, since_s: float) -> bool:
    """True if a page that has ``drawn`` a run ``since_s`` seconds ago is to be drawn anew: when its state has changed,
    and of all but comparisons, which fill in, with new results, but seldom unless a sweep has no line yet."""
    if now.state != drawn.state:
        return True
    may_wait = poll_s(now) != _FIRST_POLL_S and since_s < _CALM_REDRAW_S
    return now.run.kind != "compare" and now.version != drawn.version and not may_wait


def _watch(
    drawn: Snapshot, answer_so_far: Draw | None, fill: Draw | None, drawn_s: float, polled_every_s: float
) -> None:
    with guard.calm("the progress"):
        now = client.shared().snapshot(drawn.run.id)
        # How often a fragment looks is set where it is called.
        if now is None or is_outdated(drawn, now, time.monotonic() - drawn_s) or poll_s(now) > polled_every_s:
            st.rerun()
        with st.container(key=None if fill is None else "place", gap="small"):
            _bar(now)
            if answer_so_far is not None:
                answer_so_far(now)
        if fill is not None:
            fill(now)


def _bar(snapshot: Snapshot) -> None:
    run, mine = snapshot.run, session.may(snapshot.owner)
    with st.container(border=True, key="progress", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            words = _standing(snapshot) + ("" if mine else " · started by another visitor")
            st.progress(_share(snapshot), text=look.plain(words), width="stretch")
            if mine and {"first call", "sampling"} & set(snapshot.stages.values()):
                st.button(
                    "Stop here", key="stop", icon=":material/done:", on_click=stop, args=(run.id,),
                    help="Ends with what is known by now: the verdict, then the floor and the process peaks.",
                )  # fmt: skip
            if mine:
                st.button(
                    "Cancel", key="cancel", icon=":material/stop_circle:", on_click=cancel, args=(run.id,),
                    help="Ends the work within a second; what has been measured is kept.",
                )  # fmt: skip
        if snapshot.state == "running" and run.kind == "sweep":
            states = [point.status for point in run.points]
            st.caption("Points: " + ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)))


# Both are of another visitor's run, whose buttons are not there, or of a locked store, where they stay: no error.


def stop(run_id: str) -> None:
    """Have a run end with what is known by now."""
    with contextlib.suppress(RequestError, StoreError, ValueError):
        client.shared().stop(run_id, session.visitor())


def cancel(run_id: str) -> None:
    """End a run, or a job that explains one."""
    with contextlib.suppress(RequestError, StoreError, ValueError):
        client.shared().cancel(run_id, session.visitor())
        # So that this very rerun shows the end, and not the next look at the run.
        client.shared().wait(run_id, _CANCEL_S)


def _share(snapshot: Snapshot) -> float:
    """Return how much of a run is done by its forecast, from 0 to 1."""
    if snapshot.elapsed_s is None or not snapshot.remaining_s:
        return 0.0 if snapshot.elapsed_s is None else _ALMOST
    return min(_ALMOST, snapshot.elapsed_s / (snapshot.elapsed_s + snapshot.remaining_s))


def _standing(snapshot: Snapshot) -> str:
    if snapshot.state == "queued":
        runs = "1 run" if snapshot.position == 1 else f"{snapshot.position} runs"
        waits = f"about {look.duration(snapshot.wait_s)}, at most {look.duration(snapshot.wait_most_s)}"
        return f"waiting in the queue: {runs} before this one, {waits}. {_whose_turn()}"
    words = look.shortened(snapshot.message or snapshot.state, _MESSAGE_SIGNS)
    if snapshot.round_number is not None:
        words += f", round {snapshot.round_number}"
    if snapshot.elapsed_s is not None:
        words += f" · {look.duration(snapshot.elapsed_s)} elapsed"
    if snapshot.extended_s is not None and snapshot.remaining_s is not None:
        return f"{words} · up to {look.duration(snapshot.remaining_s)} more"
    return words + ("" if snapshot.remaining_s is None else f" · {_remaining(snapshot, snapshot.remaining_s)}")


def _remaining(snapshot: Snapshot, left_s: float) -> str:
    """Say what is left by the forecast, which can be wrong: a strategy that has not been sampled by then is not nearly
    done."""
    if left_s >= 1:
        return f"about {look.duration(left_s)} left"
    open_ = [m for m in strategies_of(snapshot.run) if m.outcome in ("ok", "not_run")]
    late = any(snapshot.stages.get(m.strategy, m.stage) not in _SAMPLED for m in open_)
    return "it takes longer than forecast" if late else "nearly done"


def _whose_turn() -> str:
    """Say what is being measured now, but not for whom."""
    first = client.shared().going_on()
    if first is None:
        return ""
    left = "" if first.remaining_s is None else f", {_remaining(first, first.remaining_s)}"
    return f"Now: {answer.heading(first.run)}{left}."


def others() -> str | None:
    """Return the sentence for a visitor who looks at no run while one that others asked for is going on."""
    queue = [run_id for run_id in client.shared().queue() if run_id not in st.session_state.get(OWN, ())]
    if not queue:
        return None
    more = f", and {len(queue) - 1} more wait" if len(queue) > 1 else ""
    return f"A run is being measured on this machine{more}; yours will wait for its turn. {_whose_turn()}"
