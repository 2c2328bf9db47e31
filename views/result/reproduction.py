"""The answer of a run that repeats another one: was the first one reproduced? Or that it continues an earlier sweep."""

import streamlit as st

from measure.judge import reproduction
from measure.run.request import RequestError
from measure.run.run import Run
from views.result import lookup
from views.ui import browser, look
from views.ui.memo import Memo

_memo = Memo(__name__)
_SIGNS = {"reproduced": ":material/check_circle:", "refuted": ":material/error:", "undecided": ":material/help:"}


def draw(run: Run, version: int) -> None:
    """Draw what a run says about its parent; ``version`` is that of the run's results."""
    assert run.parent is not None
    try:
        first = lookup.find(run.parent)
    except RequestError:
        first = None
    if first is None or first.state != "finished":
        repeats = "repeats or continues" if run.kind == "sweep" else "repeats"
        st.caption(f":material/replay: It {repeats} a run that is not known here.")
        return
    sentence = _memo.get((run.id, version, first.run.id, first.version), lambda: _sentence(first.run, run))
    with st.container(horizontal=True, key="reproduction", vertical_alignment="center", gap="small"):
        st.markdown(sentence, width="content")
        if run.kind == "compare":
            st.button("Compare both", key="both", type="tertiary", on_click=browser.to_run, args=(run.parent, run.id))
        st.button("Show the first run", key="parent", type="tertiary", on_click=browser.to_run, args=(run.parent,))


def _sentence(first: Run, run: Run) -> str:
    """The answer as Markdown."""
    if run.kind != "sweep":
        compared = reproduction.compare(first, run)
        sentence = look.named(compared.sentence, [item.strategy for item in first.measurements])
        return f"{_SIGNS.get(compared.outcome, ':material/replay:')} {sentence}"
    if reproduction.continues(run, first):
        return ":material/resume: It continues an earlier sweep, and has its points that were measured whole."
    swept = reproduction.compare_sweeps(first, run)
    return f"{_SIGNS.get(swept.outcome, ':material/replay:')} {look.plain(swept.sentence)}"
