"""The question about two strategies of a sweep: where does one overtake the other?"""

from collections.abc import Sequence

import streamlit as st

from measure.judge import crossovers
from measure.judge.lines import lines
from measure.run.run import Crossover, Run
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
    return (one, other) if {one, other} <= {line.slug for line in lines(run.points, run.axes)} else None


def crossings(run: Run, version: int, pair: tuple[str, str]) -> Sequence[Crossover]:
    """Return where one of the pair overtakes the other, or why it does nowhere."""
    return _memo.get((run.id, version, *pair), lambda: crossovers.of_two(run, *pair))


def draw(run: Run, version: int) -> tuple[str, ...]:
    """Draw the question with its two lists, and the answer; the first crossing's pair is asked about at first. Return
    the pair, which is empty where there are no two strategies."""
    modes = {line.slug: line.mode for line in lines(run.points, run.axes)}
    if len(modes) < 2:
        return ()
    one, other, *_ = modes
    crossed = ((crossing.b, crossing.a) for crossing in run.crossovers if crossing.value is not None)
    pair = asked(run) or next((pair for pair in crossed if {*pair} <= modes.keys()), (other, one))
    st.session_state[_ONE], st.session_state[_OTHER] = pair
    with st.container(horizontal=True, gap="small", key="pair", vertical_alignment="bottom"):
        for key, label in ((_ONE, texts.PAIR_ONE), (_OTHER, texts.PAIR_OTHER)):
            st.selectbox(
                label, list(modes), key=key, on_change=_choose, args=(run.id,), width=270,
                format_func=lambda slug: look.label(slug, modes[slug]),
            )  # fmt: skip
    st.markdown(look.plain(crossovers.sentences(crossings(run, version, pair))))
    return pair


def _choose(run_id: str) -> None:
    st.session_state[_CHOSEN] = run_id
