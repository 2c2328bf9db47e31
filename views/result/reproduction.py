"""The answer of a run that repeats another one: was the first one reproduced? Or that it continues an earlier sweep."""

import streamlit as st

from measure import runner
from measure.judge import reproduction
from measure.judge.reproduction import Compared, Reproduction
from measure.model.place import StoreError
from measure.model.run import Run
from measure.sweep import repetition
from measure.sweep.repetition import SweepReproduction, continues
from views.ui import look, steps
from views.ui.memo import Memo

_memo = Memo()
_SIGNS = {"reproduced": ":material/check_circle:", "refuted": ":material/error:", "undecided": ":material/help:"}


def draw(run: Run, version: int) -> None:
    """Draw what a run says about its parent; ``version`` is that of the run's results."""
    assert run.parent is not None
    try:
        first = runner.shared().snapshot(run.parent)
    except (ValueError, StoreError):
        first = None
    if first is None or first.state != "finished":
        does = "repeats or continues" if run.kind == "sweep" else "repeats"
        st.caption(f":material/replay: It {does} a run that is not known here.")
        return
    key = (run.id, version, run.parent, first.version)
    if run.kind == "sweep" and _memo.get((*key, "continues"), lambda: continues(run, first.run)):
        with st.container(horizontal=True, key="continues", vertical_alignment="center", gap="small"):
            st.caption(":material/resume: It continues an earlier sweep, with all that one measured.", width="content")
            st.button("Show the first run", key="parent", type="tertiary", on_click=steps.to_run, args=(run.parent,))
        return
    with st.container(border=True, key="reproduction", gap="small"):
        if run.kind == "sweep":
            _sweep_reproduction(_memo.get(key, lambda: repetition.compare(first.run, run)))
        else:
            _reproduction(_memo.get(key, lambda: reproduction.compare(first.run, run)))
        st.button("Show the first run", key="parent", type="tertiary", on_click=steps.to_run, args=(run.parent,))


def _answer(outcome: str, sentence: str) -> None:
    st.markdown(f"{_SIGNS.get(outcome, ':material/replay:')} {look.plain(sentence)}")


def _sweep_reproduction(answer: SweepReproduction) -> None:
    _answer(answer.outcome, answer.sentence)
    if answer.crossings:
        st.caption("\n".join(f"- {look.plain(sentence)}." for sentence in answer.crossings))
    if answer.points:
        with st.expander("Then and now", type="compact", key="then_and_now"):
            st.dataframe(
                [
                    {
                        **{name: f"{value:,}" for name, value in point.at.items()},
                        "outcome": point.answer.outcome,
                        "ranks that changed": _moves(point.answer) or "none",
                    }
                    for point in answer.points
                ],
                hide_index=True, key="reproduction_table", row_height=30,
                alt="For each point, whether its leaders lead again, and which ranks have changed",
            )  # fmt: skip


def _reproduction(answer: Reproduction) -> None:
    _answer(answer.outcome, answer.sentence)
    if answer.strategies:
        st.caption(
            look.plain(f"Ranks that changed: {moves}." if (moves := _moves(answer)) else "All ranks are the same.")
        )
        with st.expander("Then and now", type="compact", key="then_and_now"):
            st.dataframe(
                [_row(strategy, answer) for strategy in answer.strategies], hide_index=True, key="reproduction_table",
                alt="Each strategy's rank in both runs, and how its latency has changed relative to the others",
            )  # fmt: skip


def _moves(answer: Reproduction) -> str:
    """Name the ranks that have changed, and say if that is more than chance."""
    return ", ".join(
        f"{moved.slug} {moved.rank_before} → {moved.rank_now} ({'beyond' if moved.changed else 'within'} chance)"
        for moved in answer.moved
    )


def _row(strategy: Compared, answer: Reproduction) -> dict[str, str]:
    change = strategy.change
    return {
        "strategy": strategy.slug,
        "rank then": str(strategy.rank_before),
        "rank now": str(strategy.rank_now),
        f"latency over that of {answer.reference}, now against then": look.MISSING
        if change is None
        else " ".join(look.factor_with_interval(change.ratio, change.low, change.high)),
        "beyond chance": "yes" if strategy.changed else "no",
    }
