"""The run that is shown and, beside it, each one that the address names as ``with``."""

import contextlib
from collections.abc import Hashable

import pandas as pd
import streamlit as st

from measure.judge import answer, pair
from measure.output import pair_table
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.store import Snapshot
from views.result import actions, lookup, progress
from views.ui import browser, look
from views.ui.memo import Memo

_memo = Memo(__name__)
_ROW_HEIGHT, _MOST_ROWS = 30, 24  # pixels of a row, and rows: half of one would look like a fault
_MOST_RUNS = 20  # beside one: an address may name any number
# The sentences, the table and what differs: plain text, which holds neither run in memory.
_Texts = tuple[list[str], pd.DataFrame, pd.DataFrame]


def draw(run: Run, version: Hashable, baseline: str | None) -> bool:
    """Draw what has changed from the run that is shown to each other one, or the sentence why that cannot be told.
    False where there is no other, or nothing but such sentences."""
    others = list(dict.fromkeys(st.query_params.get_all("with")))[:_MOST_RUNS]
    if not others:
        return False
    with st.container(key="pair", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            count = "another run" if len(others) == 1 else f"{len(others)} other runs"
            st.markdown(f"**Compared with {count}**", width="content")
            st.button("Show this run alone", key="pair_end", type="tertiary", on_click=browser.leave,
                      args=("with",))  # fmt: skip
        going_on = [snapshot for other in others if (snapshot := _unfinished(other))]
        if going_on:  # one at a time: the page has one bar
            st.caption(f"The other run has not ended: {look.plain(answer.heading(going_on[0].run))}.")
            progress.watch(going_on[0])
        over = [other for other in others if other not in {snapshot.run.id for snapshot in going_on}]
        drawn = [_draw(run, version, baseline, other) for other in over]
        return any(drawn)


def _unfinished(run_id: str) -> Snapshot | None:
    with contextlib.suppress(RequestError):  # the sentence is drawn below
        return snapshot if (snapshot := lookup.find(run_id)).state != "finished" else None
    return None


def _draw(run: Run, version: Hashable, baseline: str | None, second: str) -> bool:
    try:
        other = lookup.find(second)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            words = f"Beside this run: {look.plain(answer.heading(other.run))}. {actions.origin(other.run)}"
            st.caption(words, width="stretch")
            st.button("Show the other run", key=f"pair_other_{second}", type="tertiary", on_click=browser.to_run,
                      args=(second,))  # fmt: skip
        key = (run.id, version, second, other.version, baseline)
        sentences, table, facts = _memo.get(key, lambda: _texts(run, other.run, baseline))
    except ValueError as error:
        st.warning(look.plain(look.sentence(str(error))), icon=":material/link_off:")
        return False
    names = list(table["strategy"])
    st.markdown("\n".join(f"- {look.named(sentence, names)}" for sentence in sentences))
    _table(table, f"pair_table_{second}", "Each strategy in both runs")
    if len(facts):
        _table(facts, f"pair_facts_{second}", "What differs between the runs")
    else:
        st.caption("Both were asked for, and measured, under the same conditions.")
    return True


def _table(frame: pd.DataFrame, key: str, alt: str) -> None:
    st.dataframe(
        frame, hide_index=True, key=key, alt=alt, row_height=_ROW_HEIGHT,
        height="content" if len(frame) <= _MOST_ROWS else (1 + _MOST_ROWS) * _ROW_HEIGHT + 2,
        column_config={frame.columns[0]: st.column_config.Column(pinned=True)},
    )  # fmt: skip


def _texts(first: Run, second: Run, baseline: str | None) -> _Texts:
    made = pair.of(first, second, baseline)
    head, *body = pair_table.cells(made)
    head[1] += ", this run"
    facts = pd.DataFrame(made.facts, columns=["what differs", *made.names])
    return pair_table.sentences(made), pd.DataFrame(body, columns=head), facts
