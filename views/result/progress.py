"""A run while it waits and runs: the stage of each strategy, in text only, polled by one fragment."""

import contextlib
import math
import time
from dataclasses import dataclass

import streamlit as st

import workloads
from measure import client
from measure.judge import answer
from measure.judge.lines import line_of
from measure.output.rows import strategies_of
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run, Stage
from measure.store.store import Snapshot
from views.result import texts
from views.ui import guard, look, session

# Until something is timed the page may look often; then it would take from what is measured, and most of all
# where it is drawn anew, charts and all: what has arrived meanwhile stands in the list of strategies.
_EAGER_POLL_S = 1.0
_CALM_POLL_S = 3.0
_CALM_REDRAW_S = 30.0
# Until a sweep has a line to show: that is what whoever has pressed Run is waiting for.
_FIRST_POLL_S = 0.5
_CANCEL_S = 1.5
_ALMOST = 0.98  # a full bar would say that it is over
_MESSAGE_SIGNS = 60
_STEPS: tuple[Stage, ...] = ("memory", "first call", "sampling", "process peak", "done")
_TIMING: tuple[Stage, ...] = ("first call", "sampling")
_SAMPLED: tuple[Stage, ...] = ("sampling", "process peak", "done")
_DONE: Stage = "done"


@dataclass(frozen=True)
class Drawn:
    """The results that a page shows, by the version of its run, and when it drew them, by the monotonic clock."""

    version: int
    state: str
    at_s: float

    def is_outdated(self, snapshot: Snapshot, now_s: float) -> bool:
        """True if the page is to be drawn anew: with results that it has not, and seldom, as that takes a sixth of a
        second of a core; but at once for a sweep that has had no line to show yet."""
        if snapshot.state != self.state:
            return True
        may_wait = poll_s(snapshot) != _FIRST_POLL_S
        return snapshot.version != self.version and (not may_wait or now_s - self.at_s >= _CALM_REDRAW_S)


def watch(snapshot: Snapshot) -> None:
    """Draw the state of an unfinished run, and have the page run again when a result has arrived."""
    every_s = poll_s(snapshot)
    drawn = Drawn(snapshot.version, snapshot.state, time.monotonic())
    st.fragment(_watch, run_every=every_s)(snapshot.run.id, drawn, every_s)


def poll_s(snapshot: Snapshot) -> float:
    """Return the seconds between two looks at a run."""
    if snapshot.run.kind == "sweep" and snapshot.state == "running" and not _has_line(snapshot.run):
        return _FIRST_POLL_S
    return _CALM_POLL_S if any(stage in _SAMPLED for stage in snapshot.stages.values()) else _EAGER_POLL_S


def _has_line(run: Run) -> bool:
    """True if a strategy has been timed at two points."""
    measured = [item for point in run.points for item in point.measurements if item.latency is not None]
    timed = [line_of(item.strategy, run.axes) for item in measured]
    return len(timed) > len(set(timed))


def _is_timing(snapshot: Snapshot) -> bool:
    return any(stage in _TIMING for stage in snapshot.stages.values())


def _watch(run_id: str, drawn: Drawn, polled_every_s: float) -> None:
    with guard.calm(texts.THE_PROGRESS):
        snapshot = client.shared().snapshot(run_id)
        if snapshot is None or drawn.is_outdated(snapshot, time.monotonic()):
            st.rerun()
        elif poll_s(snapshot) > polled_every_s:
            st.rerun()  # how often a fragment looks is set where it is called
        else:
            _draw(snapshot)


def _draw(snapshot: Snapshot) -> None:
    run = snapshot.run
    with st.container(border=True, key="progress", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", wrap=False):
            st.markdown(f"**{look.plain(_title(run))}**", width="stretch")
            mine = session.may(snapshot.owner)
            if mine and _is_timing(snapshot):
                st.button(
                    texts.STOP, key="stop", icon=":material/done:", on_click=stop, args=(run.id,),
                    help=texts.STOP_HELP,
                )  # fmt: skip
            if mine:
                st.button(
                    texts.CANCEL, key="cancel", icon=":material/stop_circle:", on_click=cancel, args=(run.id,),
                    help=texts.CANCEL_HELP,
                )  # fmt: skip
        standing = _standing(snapshot) if mine else f"{_standing(snapshot)} · {texts.STRANGE}"
        st.caption(look.plain(standing))
        if snapshot.elapsed_s is not None and snapshot.remaining_s is not None:
            whole = snapshot.elapsed_s + snapshot.remaining_s
            st.progress(min(_ALMOST, snapshot.elapsed_s / whole) if whole else 0.0)
        if snapshot.state == "running" and run.kind != "claims":
            st.html(_stages(snapshot) if run.kind == "compare" else _points(run))


def stop(run_id: str) -> None:
    """Have a run end with what is known by now."""
    # Another visitor's, whose button is not there; or the store is locked, and the button is there still.
    with contextlib.suppress(RequestError, StoreError, ValueError):
        client.shared().stop(run_id, session.visitor())


def cancel(run_id: str) -> None:
    """End a run, or a job that explains one."""
    with contextlib.suppress(RequestError, StoreError, ValueError):
        client.shared().cancel(run_id, session.visitor())
        # So that this very rerun shows the end, and not the next look at the run.
        client.shared().wait(run_id, _CANCEL_S)


def _title(run: Run) -> str:
    if run.kind == "claims":
        return answer.heading(run)
    known = run.request.workload in workloads.names()
    name = workloads.get(run.request.workload).title if known else run.request.title
    swept = {axis.name: texts.RANGE.format(first=axis.values[0], last=axis.values[-1]) for axis in run.axes}
    fixed = {key: f"{value:,}" for key, value in run.request.size.items()}
    return f"{name}, {', '.join(f'{key} {value}' for key, value in {**fixed, **swept}.items())}"


def _standing(snapshot: Snapshot) -> str:
    if snapshot.state == "queued":
        waits = texts.ONE_BEFORE if snapshot.position == 1 else texts.RUNS_BEFORE
        wait = look.duration(snapshot.wait_s)
        return waits.format(count=snapshot.position, wait=wait, now=_whose_turn())
    if snapshot.state != "running":
        return snapshot.message or snapshot.state
    stage = snapshot.message or texts.RUNNING
    if snapshot.round_number is not None:
        stage = texts.ROUND.format(stage=stage, number=snapshot.round_number)
    parts = [look.shortened(stage, _MESSAGE_SIGNS)]
    if snapshot.elapsed_s is not None:
        parts.append(texts.ELAPSED.format(duration=look.duration(snapshot.elapsed_s)))
    if snapshot.remaining_s is not None:
        parts.append(_remaining(snapshot, snapshot.remaining_s))
    return " · ".join(parts)


def _remaining(snapshot: Snapshot, left_s: float) -> str:
    """Say what is left by the forecast, which can be wrong: a strategy that has not been sampled by then is not nearly
    done."""
    if left_s >= 1:
        return texts.LEFT.format(duration=look.duration(left_s))
    late = any(
        m.outcome in ("ok", "not_run") and snapshot.stages.get(m.strategy, m.stage) not in _SAMPLED
        for m in strategies_of(snapshot.run)
    )
    return texts.LATE if late else texts.NEARLY_DONE


def _whose_turn() -> str:
    """Say what is being measured now, but not for whom."""
    first = client.shared().going_on()
    if first is None:
        return ""
    if first.remaining_s is None:
        return texts.NOW.format(title=_title(first.run))
    return texts.NOW_LEFT.format(title=_title(first.run), left=_remaining(first, first.remaining_s))


def others() -> str | None:
    """Return the sentence for a visitor who looks at no run while one is going on."""
    queue = client.shared().queue()
    if not queue:
        return None
    going_on = texts.ONE_RUNS if len(queue) == 1 else texts.OTHERS_WAIT
    return going_on.format(count=len(queue) - 1, now=_whose_turn())


_POINT_SIGNS = {"complete": "●", "running": "◐", "waiting": "○", "skipped": "–"}


def _points(run: Run) -> str:
    """Return the number of a sweep's points in each state, and a sign for each point, as HTML."""
    states = [point.status for point in run.points]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    signs = "".join(_POINT_SIGNS.get(state, "✕") for state in states)
    return (
        '<div role="status" aria-live="off" style="font-size:.9rem">'
        f'<div style="letter-spacing:.15em;opacity:.7;overflow-wrap:anywhere" aria-hidden="true">{signs}</div>'
        f"<div>{texts.POINTS.format(counts=counts)}</div></div>"
    )


def _stages(snapshot: Snapshot) -> str:
    """Return the list of strategies as HTML, one element for all: a row each would cost the cores that are being
    measured."""
    lines = []
    # A rough figure until there is a latency, the fastest first: an order that sharpens while one watches.
    rough_s = snapshot.rough_s
    known_s = {
        m.strategy: m.latency.median_s if m.latency else rough_s.get(m.strategy, math.inf)
        for m in strategies_of(snapshot.run)
    }
    for m in sorted(strategies_of(snapshot.run), key=lambda m: known_s[m.strategy]):
        stage = snapshot.stages.get(m.strategy, m.stage)
        done = _STEPS.index(stage) if stage in _STEPS else -1
        over = stage == _DONE or m.outcome not in ("ok", "not_run")
        # Whoever waits between two steps has its memory already.
        known = 0 if m.memory and done < 0 else done - 1
        ok = m.outcome in ("ok", "not_run")
        dots = "".join(
            "●" if (over and ok) or step <= known else "◐" if step == done and not over else "○" for step in range(4)
        )
        word = look.OUTCOMES.get(m.outcome, m.outcome) if not ok else _DONE if over else stage
        figures = [look.size(m.memory.peak_bytes)] if m.memory else []
        if known_s[m.strategy] < math.inf:
            figures.append((look.seconds if m.latency else look.rough_seconds)(known_s[m.strategy]))
        lines.append(
            f"<div>{look.strategy_html(m.strategy, m.mapper, m.mode)}</div>"
            f'<div style="letter-spacing:.15em;opacity:.7" aria-hidden="true">{dots}</div><div>{word}</div>'
            f'<div style="text-align:right;opacity:.8">{" · ".join(map(_unbroken, figures))}</div>'
        )
    return (
        '<div role="status" aria-live="off" style="display:grid;grid-template-columns:auto auto 1fr auto;'
        f'gap:.15rem .9rem;font-size:.9rem;overflow-x:auto">{"".join(lines)}</div>'
    )


def _unbroken(figure: str) -> str:
    """Return a figure with its unit, which a narrow screen does not part."""
    return figure.replace(" ", "\N{NO-BREAK SPACE}")
