"""The tab «Details» of a comparison: all figures, the total of many calls, the machine and the method."""

from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import streamlit as st

from measure.judge import break_even, limit, payoff
from measure.judge.findings import Findings
from measure.machine import environment
from measure.output import columns
from measure.run.run import Run
from views.charts import names, totals
from views.ui import look
from views.ui.memo import Memo, packed

_memo = Memo(__name__)
ROW_HEIGHT = 30  # pixels, as all widths here
_MOST_ROWS = 14
_NUMBER_WIDTH = 90
# Of the table of strategies, by heading.
_WIDTHS = {"rank": 54, "95 % interval": 134, "outcome": 106}
_SIGN_WIDTH, _MARGIN, _WIDEST = 5.9, 26, 420


def draw(result: Findings, version: int, prefix: str) -> None:
    """Draw the tab; nothing of it is computed anew while ``version`` stays. ``prefix`` begins the keys."""
    draw_table(result, version, prefix)
    _totals(result, (result.run.id, version, result.baseline), prefix)
    st.dataframe(
        pd.DataFrame([(str(name), str(value)) for name, value in facts(result.run)], columns=["fact", "value"]),
        hide_index=True, key=f"{prefix}environment", height="content", alt="What the comparison was measured on",
        column_config={"fact": st.column_config.TextColumn(width="medium"),
                       "value": st.column_config.TextColumn(width="large")},
    )  # fmt: skip


# --- the table -------------------------------------------------------------------------------------------------------


def draw_table(result: Findings, version: int, prefix: str) -> None:
    """Draw all figures of all strategies."""
    key = (result.run.id, version, result.baseline)
    table: pa.Table = _memo.get((*key, "table"), lambda: packed(frame(result)))
    st.dataframe(
        table, hide_index=True, key=f"{prefix}everything", column_config=_config(result), row_height=ROW_HEIGHT,
        height=height(table), placeholder=look.MISSING, alt="The figures of all strategies",
    )  # fmt: skip
    if result.baseline:
        st.caption(f"× faster than {look.named(result.baseline, [result.baseline])}")


def frame(result: Findings) -> pd.DataFrame:
    """Return all figures of all strategies, as numbers that can be sorted and copied; milliseconds and MiB."""
    shown = columns.of("page", result)
    made = pd.DataFrame(
        [[columns.number(column, row) for column in shown] for row in result.rows],
        columns=[column.page for column in shown],
    )
    return made.astype({column.page: column.unit.dtype for column in shown if column.unit.dtype})


def height(table: pa.Table) -> int | Literal["content"]:
    """Return a height for all rows, or for as many whole ones as are easy to take in: half a row looks like a fault."""
    return "content" if table.num_rows <= _MOST_ROWS else (1 + _MOST_ROWS) * ROW_HEIGHT + 2


def name_width(result: Findings) -> int:
    """Return the width that shows the longest name whole; of names longer than any of ours, most of it."""
    longest = max((len(row.label) for row in result.rows), default=0)
    return min(_WIDEST, _MARGIN + round(_SIGN_WIDTH * longest))


def _config(result: Findings) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for column in columns.of("page", result):
        name, about = column.page, column.help or None
        if column.unit.printf:
            config[name] = st.column_config.NumberColumn(
                name, format=column.unit.printf, help=about, width=_NUMBER_WIDTH
            )
        else:
            config[name] = st.column_config.Column(name, help=about, width=_WIDTHS.get(name))
    config["strategy"] = st.column_config.TextColumn("strategy", pinned=True, width=name_width(result))
    return config


# --- many calls ------------------------------------------------------------------------------------------------------


def _totals(result: Findings, key: tuple[object, ...], prefix: str) -> None:
    drawn: pa.Table = _memo.get((*key, "totals"), lambda: packed(totals.frame(result)))
    if not drawn.num_rows:
        return
    rows = [row for row in result.rows if row.outcome == "ok" and row.median_s is not None]
    sentence = payoff.sentence(payoff.stretches_of(result))
    st.markdown(look.named(sentence, [row.slug for row in rows]))
    st.html(look.legend_html([row.mapper for row in rows], [row.mode for row in rows], lines=True))
    st.vega_lite_chart(drawn, names.sized(totals.SPEC, drawn), key=f"{prefix}totals", alt=sentence)
    start_s = break_even.runtime_start_s(result.run.measurements)
    if start_s is not None:
        st.caption(
            f"TensorFlow and XLA take up to {look.seconds(start_s)} once per process to start, whatever the strategy: "
            "that is not counted."
        )


# --- the machine and the method --------------------------------------------------------------------------------------


def facts(run: Run) -> list[tuple[str, str]]:
    """Return the machine's facts and the run's own, by name."""
    made = [*environment.describe(run.environment), ("run", run.id), ("created", run.created), ("status", run.status)]
    made += [("ended because", run.stop_reason)]
    made += [("analysis", f"{run.analysis.method}; {run.analysis.confidence:.0%} intervals")]
    if run.limit is not None:
        made.append((limit.FLOOR, limit.describe(run.limit)))
    if (control := run.control) is not None:
        ends = f"[{look.factor(control.low)}, {look.factor(control.high)}]"
        made.append(("control", f"{control.strategy} entered twice: ratio {control.ratio:.3f} {ends}"))
    return made
