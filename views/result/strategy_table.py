"""The table of all strategies, with the columns that a person picks."""

from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import streamlit as st

from measure.output import columns
from measure.output.rows import Row
from measure.run.run import Run
from views.result import texts
from views.ui import look
from views.ui.memo import Memo, packed

_memo = Memo(__name__)
ROW_HEIGHT = 30  # pixels, as all widths here
_MOST_ROWS = 14
_NUMBER_WIDTH = 90
# By heading, as `measure.output.columns` has it.
_WIDTHS = {"rank": 54, "95 % interval": 134, "outcome": 106}
_SIGN_WIDTH, _MARGIN, _WIDEST = 5.9, 26, 420
_NAME = "strategy"
_PICKED = "table_columns"  # what a person picked, in all results of a session


def draw(run: Run, version: int, rows: list[Row], prefix: str, *, baseline: str | None) -> None:
    """Draw the table; nothing of it is computed anew while ``version`` stays. ``prefix`` begins its keys."""
    table = _memo.get((run.id, version, baseline), lambda: packed(frame(rows, run)))
    heads = table.column_names
    # At the left: the table's own buttons appear over its right corner.
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        picked = _pick(heads, prefix)
        if baseline:
            st.caption(texts.FASTER.format(baseline=look.plain(baseline)))
    st.dataframe(
        table, hide_index=True, key=f"{prefix}everything", column_config=_config(rows),
        column_order=[_NAME, *(head for head in heads if head in picked)], row_height=ROW_HEIGHT,
        height=height(table), placeholder=look.MISSING, alt=texts.TABLE_ALT,
    )  # fmt: skip


def frame(rows: list[Row], run: Run) -> pd.DataFrame:
    """Return all figures of all strategies, as numbers that can be sorted and copied; milliseconds and MiB."""
    if not rows:
        return pd.DataFrame()
    shown = columns.of("page", run)
    made = pd.DataFrame([[column.shown(row) for column in shown] for row in rows], columns=[c.page for c in shown])
    return made.astype({column.page: column.unit.dtype for column in shown if column.unit.dtype})


def height(table: pa.Table) -> int | Literal["content"]:
    """Return a height for all rows, or for as many whole ones as are easy to take in: half a row looks like a fault."""
    return "content" if table.num_rows <= _MOST_ROWS else (1 + _MOST_ROWS) * ROW_HEIGHT + 2


def name_width(rows: list[Row]) -> int:
    """Return the width that shows the longest name whole; of names longer than any of ours, most of it."""
    return min(_WIDEST, _MARGIN + round(_SIGN_WIDTH * max((len(row.label) for row in rows), default=0)))


def _pick(heads: list[str], prefix: str) -> set[str]:
    """Draw the list of columns and return those to show. The choice is the session's, not the address'."""
    at_first = [column.page for column in columns.of("page") if column.at_first]
    chosen = st.session_state.get(_PICKED, at_first)
    offered = [head for head in heads if head != _NAME]
    with st.popover(texts.COLUMNS, icon=":material/view_column:", key=f"{prefix}columns", on_change="rerun") as opened:
        if opened.open:
            key = f"{prefix}columns_shown"
            st.session_state[key] = [head for head in offered if head in chosen]
            st.pills(
                texts.COLUMNS_LABEL, offered, selection_mode="multi", key=key, label_visibility="collapsed",
                on_change=_keep, args=(key, [head for head in chosen if head not in offered]),
            )  # fmt: skip
    return {head for head in chosen if head != _NAME}


def _keep(key: str, elsewhere: list[str]) -> None:
    """Keep what was picked, and ``elsewhere``: what this run does not have."""
    st.session_state[_PICKED] = [*st.session_state[key], *elsewhere]


def _config(rows: list[Row]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for column in columns.of("page"):
        name, explained = column.page, column.help or None
        if column.unit.printf:
            form, width = column.unit.printf, _NUMBER_WIDTH
            config[name] = st.column_config.NumberColumn(name, format=form, help=explained, width=width)
        else:
            config[name] = st.column_config.Column(name, help=explained, width=_WIDTHS.get(name))
    config[_NAME] = st.column_config.TextColumn(_NAME, pinned=True, width=name_width(rows))
    return config
