"""The run that is shown and, beside it, another one, which the address names as ``with``."""

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from measure.judge import answer, pair
from measure.output import pair_table
from measure.run.run import Run
from views.result import actions, lookup
from views.ui import browser, look
from views.ui.memo import Memo

_memo = Memo(__name__)
_ROW_HEIGHT, _MOST_ROWS = 30, 24  # pixels of a row, and rows: half of one would look like a fault
# The sentences, the table and what differs: plain text, which holds neither run in memory.
_Texts = tuple[list[str], pd.DataFrame, pd.DataFrame]


def draw(run: Run, version: Hashable, baseline: str | None) -> bool:
    """Draw what has changed from the run that is shown to the other one, or the sentence why that cannot be told. False
    where there is no other, or that sentence."""
    second = st.query_params.get("with")
    if not second:
        return False
    with st.container(key="pair", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("**Compared with another run**", width="content")
            st.button("Show this run alone", key="pair_end", type="tertiary", on_click=browser.leave,
                      args=("with",))  # fmt: skip
            there = st.empty()
        try:
            other = lookup.find(second)
            if other.state != "finished":
                raise ValueError(f"run {second} has not ended: then it can be put beside this one")
            key = (run.id, version, second, other.version, baseline)
            sentences, table, facts = _memo.get(key, lambda: _texts(run, other.run, baseline))
        except ValueError as error:
            st.warning(look.plain(look.sentence(str(error))), icon=":material/link_off:")
            return False
        there.button("Show the second run", key="pair_other", type="tertiary", on_click=browser.to_run,
                     args=(second,))  # fmt: skip
        st.caption(f"First: this run. Second: {look.plain(answer.heading(other.run))}. {actions.origin(other.run)}")
        names = list(table["strategy"])
        st.markdown("\n".join(f"- {look.named(sentence, names)}" for sentence in sentences))
        _table(table, "pair_table", "Each strategy in both runs")
        if len(facts):
            _table(facts, "pair_facts", "What differs between the runs")
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
    facts = pd.DataFrame(made.facts, columns=["what differs", "first", "second"])
    return pair_table.sentences(made), pd.DataFrame(body, columns=head), facts
