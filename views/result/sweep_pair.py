"""The question about two strategies of a sweep: where does one overtake the other?"""

import streamlit as st

from measure.model.run import Run
from measure.sweep import pairs
from measure.sweep.evidence import evidence
from measure.sweep.lines import lines
from measure.sweep.pairs import Answer
from views.result import texts
from views.ui import look
from views.ui.memo import Memo

_memo = Memo(__name__)
_ONE, _OTHER, _CHOSEN = "pair_one", "pair_other", "pair_chosen"


def asked(run: Run) -> tuple[str, str] | None:
    """Return the two strategies that a person asks about in this run; None as long as nobody has chosen any."""
    if st.session_state.get(_CHOSEN) != run.id:
        return None
    one, other = str(st.session_state.get(_ONE)), str(st.session_state.get(_OTHER))
    return (one, other) if {one, other} <= set(pairs.offered(run)) else None


def answer(run: Run, version: int, pair: tuple[str, str]) -> Answer:
    """Return the answer to «where does the first of the pair overtake the second?»."""
    known = _memo.get((run.id, version), lambda: evidence(run.points, run.axes))
    return _memo.get((run.id, version, *pair), lambda: pairs.ask(run, *pair, known))


def draw(run: Run, version: int) -> tuple[str, ...]:
    """Draw the question with its two lists, and the answer; the verdict's own pair is asked about at first. Return the
    pair, which is empty where there are no two strategies."""
    pair = asked(run) or pairs.first(run)
    if pair is None:
        return ()
    offered = pairs.offered(run)
    modes = {line.slug: line.mode for line in lines(run.points, run.axes)}
    st.session_state[_ONE], st.session_state[_OTHER] = pair
    with st.container(horizontal=True, gap="small", key="pair", vertical_alignment="bottom"):
        for key, label in ((_ONE, texts.PAIR_ONE), (_OTHER, texts.PAIR_OTHER)):
            st.selectbox(
                label, offered, key=key, on_change=_choose, args=(run.id,), width=270,
                format_func=lambda slug: look.label(slug, modes[slug]),
            )  # fmt: skip
    st.markdown(look.plain(answer(run, version, pair).sentence))
    return pair


def _choose(run_id: str) -> None:
    st.session_state[_CHOSEN] = run_id
