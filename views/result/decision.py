"""The decision on a run: shown above its result, and the form in which people write it."""

import streamlit as st

from measure import client
from measure.admission import NOBODY
from measure.run.decision import MOST_NOTE, MOST_TITLE, account, make
from measure.run.place import StoreError
from measure.run.run import Run
from views.ui import look, session
from workloads import places


def draw(run: Run) -> None:
    """Draw the decision, where there is one: text, whoever wrote it."""
    if not (written := run.decision):
        return
    with st.container(border=True, key="decision", gap="xsmall"):
        if written.title:
            st.markdown(f"**{look.plain(written.title)}**")
        for words in filter(None, (written.decision, written.note)):
            st.markdown("  \n".join(map(look.plain, words.splitlines())))
        by = f"by {written.by}, " if written.by else ""
        st.caption(f":material/gavel: Decided {look.plain(by + session.local(written.at))}")


def button(run: Run, version: int) -> None:
    """Draw the button and, when it is pressed, the form; ``version``: that of the run, another of which closes it."""
    key = look.key("decide", run.id, str(version))
    there = run.decision or None
    with st.popover(
        "Edit decision" if there else "Decide", icon=":material/gavel:", key=key, on_change="rerun"
    ) as opened:
        if not opened.open:
            return
        with st.form(f"{key}_form", border=False):
            st.text_input("Title", there.title if there else "", key=f"{key}_title", max_chars=MOST_TITLE)
            for name in ("decision", "note"):
                words = getattr(there, name) if there else ""
                st.text_area(name.title(), words, key=f"{key}_{name}", max_chars=MOST_NOTE, height=100)
            by = there.by if there else "" if places.hosted() else account()
            st.text_input("Your name", by, key=f"{key}_by", max_chars=MOST_TITLE)
            st.caption("Shown to whoever opens the run or its file. Empty fields remove it.")
            st.form_submit_button("Save", key=f"{key}_save", type="primary", on_click=_save, args=(run.id, key))


def _save(run_id: str, key: str) -> None:
    """Write what is in the form; what went wrong stands at the top of the page until something else is done."""
    who, state = session.visitor(), st.session_state
    try:
        made = make(*(str(state[f"{key}_{name}"]) for name in ("title", "decision", "note", "by")))
        if not client.shared().store.decide(run_id, made, None if who == NOBODY else who.owner):
            raise ValueError("the run is gone, or another visitor's")
    except (ValueError, StoreError) as error:
        st.warning(look.plain(f"Nothing was saved: {error}."))
