"""A comparison's result: the answer, the two charts, correctness, failures, everything in one table."""

import html
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import streamlit as st

from measure.model.run import Run
from measure.output import rows
from measure.output.rows import Row
from views.charts import base, latency, memory
from views.result import answer, details, tables
from views.ui import guard, look
from views.ui.memo import Memo, packed

_memo = Memo()
_FEW_NOTES = 3
_TABLE_ROW, _NUMBER_WIDTH = 30, 96  # pixels
_MOST_TABLE_ROWS = 14


@dataclass(frozen=True)
class Shown:
    """Everything that is drawn of one version of a run; computed once, however often a widget changes."""

    rows: list[Row]
    latency: pa.Table
    memory: pa.Table
    correctness: pa.Table
    everything: pa.Table
    latency_alt: str
    memory_alt: str
    limited: bool
    limit: str


def _shown(run: Run, version: int, baseline: str | None) -> Shown:
    made = rows.make(run, baseline)
    revision = (run.id, version, baseline)
    return Shown(
        rows=made,
        latency=packed(base.revised(latency.frame(made, run.limit), *revision)),
        memory=packed(base.revised(memory.frame(made), *revision)),
        correctness=packed(tables.correctness_frame(made)),
        everything=packed(tables.everything_frame(made, run)),
        latency_alt=latency.takeaway(made),
        memory_alt=memory.takeaway(made),
        limited=run.limit is not None,
        limit=tables.limit_caption(run),
    )


def draw_comparison(
    run: Run, version: int, *, finished: bool, baseline: str | None, prefix: str = "", imported: bool = False
) -> None:
    """Draw a comparison, finished or not. Nothing is computed anew while ``version``, that of its results, stays;
    ``prefix`` begins the charts' keys; ``imported``: its code may be anybody's."""
    timed = [m.strategy for m in rows.baselines(run)]
    baseline = rows.choose_baseline(run, baseline)
    shown = _memo.get((run.id, version, finished, baseline), lambda: _shown(run, version, baseline))
    with guard.calm("the result"):
        if finished:
            answer.draw(run, version, baseline, timed, prefix, imported=imported)
        draw_doubts(tables.doubts(run))
        _charts(shown, prefix)
        _failures(shown, run, prefix)
        _notes(shown, run)
        _correctness(shown, prefix)
        _everything(shown, baseline, prefix)
    if finished:
        details.draw(run, version, shown.rows, prefix, imported=imported)


def draw_doubts(sentences: list[str], key: str = "doubts") -> None:
    """Draw what a run cannot tell, where its verdict is read: whole, and never folded away."""
    if sentences:
        with st.container(gap="xsmall", key=key):
            for words in sentences:
                st.markdown(f":orange[:material/warning:] {look.plain(words)}")


def _charts(shown: Shown, prefix: str) -> None:
    count = len(shown.rows)
    with st.grid(2, min_column_width=380, gap="medium", key="charts") as grid:
        with grid.cell():
            st.markdown("**Latency** of one call, log axis")
            spec = base.sized(latency.specification(limited=shown.limited), count)
            st.vega_lite_chart(shown.latency, spec, key=f"{prefix}latency", alt=shown.latency_alt)
            st.caption(f"Dot: latency; bar: 95 % interval; a bracket joins ties{shown.limit}")
        with grid.cell():
            st.markdown("**Memory** of one call")
            spec = base.sized(memory.specification(limited=shown.limited), count)
            st.vega_lite_chart(shown.memory, spec, key=f"{prefix}memory", alt=shown.memory_alt)
            st.caption(f"Solid: output; pale: temporary; tick: process peak. {_before(shown.rows)}")


def _before(shown: list[Row]) -> str:
    known = next((row for row in shown if row.input_bytes is not None), None)
    if known is None:
        return ""
    captured = f" and {look.size(known.captured_bytes)} of variables" if known.captured_bytes else ""
    return f"Not counted: {look.size(known.input_bytes)} of inputs{captured}."


def _failures(shown: Shown, run: Run, prefix: str) -> None:
    lines = tables.failure_lines(shown.rows, run)
    if not lines:
        return
    st.markdown(f"**Did not work** ({len(lines)})")
    with st.container(border=True, gap="small", key="failures"):
        for number, (row, sentence) in enumerate(lines):
            st.html(
                f"<div>{look.strategy_html(row.slug, row.mapper, row.mode)} "
                f'<b style="margin:0 .5em">{html.escape(row.status)}</b> '
                f'<span style="overflow-wrap:anywhere">{html.escape(sentence)}</span></div>'
            )
            if row.detail.strip() and row.detail.strip() != sentence.strip():
                with st.expander("Full text", type="compact", key=look.key(f"{prefix}detail", str(number), row.slug)):
                    st.code(row.detail, language=None, wrap_lines=True, height=260)


def _notes(shown: Shown, run: Run) -> None:
    """Draw what a person should know before trusting a figure."""
    notes = tables.notes(shown.rows, run)
    if notes:
        open_ = len(notes) <= _FEW_NOTES or tables.has_noise(shown.rows)
        with st.expander(f"Good to know ({len(notes)})", expanded=open_, icon=":material/info:"):
            st.caption("\n".join(f"- {look.plain(note)}" for note in notes))


def _correctness(shown: Shown, prefix: str) -> None:
    st.markdown(f"**Correctness** · {look.plain(tables.correctness_sentence(shown.rows))}")
    if shown.correctness.num_rows:
        st.dataframe(
            shown.correctness, hide_index=True, key=f"{prefix}correctness", row_height=_TABLE_ROW,
            height=table_height(shown.correctness),
            alt="Each strategy's largest errors against the float64 reference",
        )  # fmt: skip


def table_height(table: pa.Table) -> int | Literal["content"]:
    """Return a height for all rows, or for as many whole ones as are easy to take in: half a row looks like a fault."""
    return "content" if table.num_rows <= _MOST_TABLE_ROWS else (1 + _MOST_TABLE_ROWS) * _TABLE_ROW + 2


def _everything(shown: Shown, baseline: str | None, prefix: str) -> None:
    config: dict[str, Any] = {
        name: st.column_config.NumberColumn(name, format=format_, help=text, width=_NUMBER_WIDTH)
        for name, (format_, text) in tables.number_formats().items()
        if name in shown.everything.column_names
    }
    config["strategy"] = st.column_config.TextColumn("strategy", pinned=True)
    config["outcome"] = st.column_config.TextColumn("outcome", width=110)
    config["rank"] = st.column_config.NumberColumn("rank", width=60)
    st.markdown("**Everything** in one table" + (f", factors against {look.plain(baseline)}" if baseline else ""))
    st.dataframe(
        shown.everything, hide_index=True, key=f"{prefix}everything", column_config=config,
        row_height=_TABLE_ROW, height=table_height(shown.everything), placeholder=look.MISSING,
        alt="All figures of all strategies",
    )  # fmt: skip
