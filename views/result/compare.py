"""A comparison's result: the answer, the two charts, the details in tabs, correctness, failures."""

from dataclasses import dataclass

import pyarrow as pa
import streamlit as st

from measure.output import rows
from measure.output.rows import Row
from measure.run.run import Run
from views.charts import base, latency, memory
from views.result import answer, correctness, details, heading, problems, strategy_table, tables, texts
from views.ui import guard, look
from views.ui.memo import Memo, packed

_memo = Memo(__name__)


@dataclass(frozen=True)
class Shown:
    """Everything that is drawn of one version of a run; computed once, however often a widget changes."""

    rows: list[Row]
    latency: pa.Table
    memory: pa.Table
    memory_unit: str
    latency_alt: str
    memory_alt: str
    latency_caption: str
    memory_caption: str
    floor: bool


def _shown(run: Run, version: int, baseline: str | None) -> Shown:
    made = rows.make(run, baseline)
    revision = (run.id, version, baseline)
    floor = latency.floor_of(run)
    return Shown(
        rows=made,
        latency=packed(base.revised(latency.frame(made, floor), *revision)),
        memory=packed(base.revised(memory.frame(made), *revision)),
        memory_unit=memory.unit(made),
        latency_alt=latency.takeaway(made),
        memory_alt=memory.takeaway(made),
        latency_caption=latency.caption(made, run),
        memory_caption=memory.caption(made),
        floor=floor is not None,
    )


def draw_comparison(
    run: Run, version: int, *, finished: bool, baseline: str | None, prefix: str = "", imported: bool = False
) -> None:
    """Draw a comparison, finished or not. Nothing is computed anew while ``version``, that of its results, stays;
    ``prefix`` begins the charts' keys; ``imported``: its code may be anybody's."""
    timed = [m.strategy for m in rows.baselines(run)]
    baseline = rows.choose_baseline(run, baseline)
    shown = _memo.get((run.id, version, finished, baseline), lambda: _shown(run, version, baseline))
    with guard.calm(texts.THE_RESULT):
        if finished:
            answer.draw(run, version, baseline, timed, prefix, imported=imported)
        heading.draw_doubts(tables.doubts(run))
        _charts(shown, prefix)
    if finished:
        details.draw(run, version, shown.rows, baseline, prefix, imported=imported)
    with guard.calm(texts.THE_REST):
        if not finished:
            strategy_table.draw(run, version, shown.rows, prefix, baseline=baseline)
        correctness.draw(run.request, shown.rows, prefix)
        problems.draw(shown.rows, run, prefix)


def _charts(shown: Shown, prefix: str) -> None:
    count = len(shown.rows)
    with st.grid(2, min_column_width=380, gap="medium", key="charts") as grid:
        with grid.cell():
            st.markdown(texts.LATENCY)
            spec = base.sized(latency.specification(floor=shown.floor), count)
            st.vega_lite_chart(shown.latency, spec, key=f"{prefix}latency", alt=shown.latency_alt)
            st.caption(look.plain(shown.latency_caption))
        with grid.cell():
            st.markdown(texts.MEMORY)
            spec = base.sized(memory.specification(shown.memory_unit, floor=shown.floor), count)
            st.vega_lite_chart(shown.memory, spec, key=f"{prefix}memory", alt=shown.memory_alt)
            st.caption(look.plain(shown.memory_caption))
