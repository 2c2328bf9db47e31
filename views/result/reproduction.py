"""The answer of a run that repeats another one: was the first one reproduced? Or that it continues an earlier sweep."""

import streamlit as st

from measure import client
from measure.judge import reproduction, sweep_reproduction
from measure.judge.reproduction import Compared, Reproduction
from measure.judge.sweep_reproduction import SweepReproduction, continues
from measure.run.place import StoreError
from measure.run.run import Run
from views.result import texts
from views.ui import look, steps
from views.ui.memo import Memo

_memo = Memo(__name__)
_SIGNS = {"reproduced": ":material/check_circle:", "refuted": ":material/error:", "undecided": ":material/help:"}


def draw(run: Run, version: int) -> None:
    """Draw what a run says about its parent; ``version`` is that of the run's results."""
    assert run.parent is not None
    try:
        first = client.shared().snapshot(run.parent)
    except (ValueError, StoreError):
        first = None
    if first is None or first.state != "finished":
        st.caption(texts.CONTINUES_UNKNOWN if run.kind == "sweep" else texts.REPEATS_UNKNOWN)
        return
    key = (run.id, version, run.parent, first.version)
    if run.kind == "sweep" and _memo.get((*key, "continues"), lambda: continues(run, first.run)):
        with st.container(horizontal=True, key="continues", vertical_alignment="center", gap="small"):
            st.caption(texts.CONTINUES, width="content")
            st.button(texts.SHOW_FIRST, key="parent", type="tertiary", on_click=steps.to_run, args=(run.parent,))
        return
    with st.container(border=True, key="reproduction", gap="small"):
        if run.kind == "sweep":
            _sweep_reproduction(_memo.get(key, lambda: sweep_reproduction.compare(first.run, run)))
        else:
            _reproduction(_memo.get(key, lambda: reproduction.compare(first.run, run)))
        st.button(texts.SHOW_FIRST, key="parent", type="tertiary", on_click=steps.to_run, args=(run.parent,))


def _answer(outcome: str, sentence: str) -> None:
    st.markdown(f"{_SIGNS.get(outcome, ':material/replay:')} {look.plain(sentence)}")


def _sweep_reproduction(answer: SweepReproduction) -> None:
    _answer(answer.outcome, answer.sentence)
    if answer.points:
        with st.expander(texts.THEN_AND_NOW, type="compact", key="then_and_now"):
            st.dataframe(
                [
                    {
                        **{name: f"{value:,}" for name, value in at.items()},
                        texts.POINT_OUTCOME: of_point.outcome,
                        texts.POINT_RANKS: _moves(of_point) or texts.NONE,
                    }
                    for at, of_point in answer.points
                ],
                hide_index=True, key="reproduction_table", row_height=30,
                alt=texts.REPEATED_SWEEP_ALT,
            )  # fmt: skip


def _reproduction(answer: Reproduction) -> None:
    _answer(answer.outcome, answer.sentence)
    if answer.strategies:
        moves = _moves(answer)
        st.caption(look.plain(texts.RANKS_CHANGED.format(moves=moves) if moves else texts.RANKS_SAME))
        with st.expander(texts.THEN_AND_NOW, type="compact", key="then_and_now"):
            st.dataframe(
                [_row(strategy, answer) for strategy in answer.strategies], hide_index=True, key="reproduction_table",
                alt=texts.REPEATED_ALT,
            )  # fmt: skip


def _moves(answer: Reproduction) -> str:
    """Name the ranks that have changed, and say if that is more than chance."""
    return ", ".join(
        (texts.MOVED_BEYOND if moved.changed else texts.MOVED_WITHIN).format(
            strategy=moved.slug, before=moved.rank_before, now=moved.rank_now
        )
        for moved in answer.moved
    )


def _row(strategy: Compared, answer: Reproduction) -> dict[str, str]:
    change = strategy.change
    return {
        texts.STRATEGY_COLUMN: strategy.slug,
        texts.RANK_THEN: str(strategy.rank_before),
        texts.RANK_NOW: str(strategy.rank_now),
        texts.LATENCY_CHANGE.format(reference=answer.reference): look.MISSING
        if change is None
        else " ".join(look.factor_with_interval(change.ratio, change.low, change.high)),
        texts.BEYOND_CHANCE: texts.YES if strategy.changed else texts.NO,
    }
