"""The answer of a run that repeats another one: was the first one reproduced? Or that it continues an earlier sweep."""

import streamlit as st

from measure import client
from measure.judge import reproduction, sweep_reproduction
from measure.judge.reproduction import Reproduction
from measure.judge.sweep_reproduction import SweepReproduction
from measure.run.place import StoreError
from measure.run.run import Run
from views.ui import look, steps
from views.ui.memo import Memo

_memo = Memo(__name__)
_SIGNS = {"reproduced": ":material/check_circle:", "refuted": ":material/error:", "undecided": ":material/help:"}


def draw(run: Run, version: int) -> None:
    """Draw what a run says about its parent; ``version`` is that of the run's results."""
    assert run.parent is not None
    swept = run.kind == "sweep"
    try:
        first = client.shared().snapshot(run.parent)
    except (ValueError, StoreError):
        first = None
    if first is None or first.state != "finished":
        repeats = "repeats or continues" if swept else "repeats"
        st.caption(f":material/replay: It {repeats} a run that is not known here.")
        return
    before, key = first.run, (run.id, version, run.parent, first.version)
    if swept and _memo.get((*key, "continues"), lambda: sweep_reproduction.continues(run, before)):
        with st.container(horizontal=True, key="continues", vertical_alignment="center", gap="small"):
            st.caption(
                ":material/resume: It continues an earlier sweep, and has its points that were measured whole.",
                width="content",
            )
            _show_first(run.parent)
        return
    compare = sweep_reproduction.compare if swept else reproduction.compare
    answer: Reproduction | SweepReproduction = _memo.get(key, lambda: compare(before, run))
    rows = _of_points(answer) if isinstance(answer, SweepReproduction) else _of_strategies(answer)
    names = [line.slug for line in answer.strategies] if isinstance(answer, Reproduction) else []
    with st.container(border=True, key="reproduction", gap="small"):
        st.markdown(f"{_SIGNS.get(answer.outcome, ':material/replay:')} {look.named(answer.sentence, names)}")
        if rows:
            with st.expander("Then and now", type="compact", key="then_and_now"):
                st.dataframe(
                    rows, hide_index=True, key="reproduction_table", row_height=30, height="content",
                    alt="Each strategy's rank, or each point's leaders, in both runs",
                )  # fmt: skip
        _show_first(run.parent)


def _show_first(run_id: str) -> None:
    st.button("Show the first run", key="parent", type="tertiary", on_click=steps.to_run, args=(run_id,))


def _of_points(answer: SweepReproduction) -> list[dict[str, str]]:
    return [
        {
            **{name: f"{value:,}" for name, value in at.items()},
            "outcome": point.outcome,
            "led then": ", ".join(point.before) or look.MISSING,
            "leads now": ", ".join(point.now) or look.MISSING,
        }
        for at, point in answer.points
    ]


def _of_strategies(answer: Reproduction) -> list[dict[str, str]]:
    over = f"latency over that of {answer.reference}, now against then"
    return [
        {
            "strategy": line.slug,
            "rank then": str(line.rank_before),
            "rank now": str(line.rank_now),
            over: " ".join(look.factor_with_interval(line.change.ratio, line.change.low, line.change.high))
            if line.change
            else look.MISSING,
            "beyond chance": "yes" if line.changed else "no",
        }
        for line in answer.strategies
    ]
