"""The four tabs below a comparison, of which only the open one has a body: why, code, samples, details."""

import difflib
from collections.abc import Callable, Hashable
from functools import partial

import pandas as pd
import pyarrow as pa
import streamlit as st

from measure.judge import break_even, limit
from measure.judge.findings import Findings
from measure.machine import environment
from measure.output.table import columns
from measure.run.request import script_of
from measure.run.run import Run
from views.charts import names, samples, total_time
from views.result import why
from views.ui import guard, look
from views.ui.memo import Memo, packed

_memo = Memo(__name__)
# What earlier links call them.
_EARLIER = {"Table": "Details", "Break even": "Details", "Environment": "Details", "Memory over one call": "Why"}
_MOST_COMPARED = 1_500  # lines of two scripts: nobody reads the changes of more
_VECTORISED = "tf.vectorized_map("  # in a script: whatever name the strategy has
_NONE, _ALL = "none", "all"
_ROW_HEIGHT, _MOST_ROWS = 30, 14  # pixels of a row of the table, and rows: half of one would look like a fault


def draw(result: Findings, version: Hashable, prefix: str, *, imported: bool) -> None:
    """Draw the tabs; nothing is computed anew while ``version`` stays. ``prefix`` begins the widgets' keys;
    ``imported``: the run comes from elsewhere, and its code from anybody."""
    bodies: dict[str, Callable[[Findings, Hashable, str], None]] = {
        "Why": partial(why.draw, imported=imported),
        "Code": partial(_code, imported=imported),
        "Samples": _samples,
        "Details": _details,
    }
    if (earlier := st.query_params.get("tab")) in _EARLIER:
        st.session_state["tab"] = _EARLIER[earlier]
    with st.container(key=f"{prefix}tabs"):
        drawn = st.tabs(list(bodies), key="tab", on_change="rerun", bind="query-params")
        for tab, (name, body) in zip(drawn, bodies.items(), strict=True):
            if tab.open:
                with tab, guard.calm(f"the tab «{name}»"):
                    body(result, version, prefix)


def _code(result: Findings, version: Hashable, prefix: str, *, imported: bool) -> None:
    slugs = [row.slug for row in result.rows]
    if imported:
        st.warning(
            "This code is from an imported file. It is shown as text, and nothing here has executed it: read it before "
            "you do.",
            icon=":material/upload_file:",
        )
    else:
        st.caption("Whole scripts: they run with TensorFlow and NumPy alone, and are the code that was measured.")
    if not slugs:
        return
    left, right = st.columns(2)
    shown = left.selectbox("Script of", slugs, key="code_of")
    other = right.selectbox("Compared with", [_NONE, *(slug for slug in slugs if slug != shown)], key="code_against")
    sources = [_source(result.run, slug, imported=imported) for slug in (shown, other) if slug != _NONE]
    if any(_VECTORISED in source for source in sources):
        st.caption(
            ":material/info: `tf.vectorized_map` maps many elements at once: `tf.print` and assertions in the function "
            "run for only one of them, without a warning."
        )
    if len(sources) == 1:
        st.code(sources[0], line_numbers=True)
    else:
        one, two = (source.splitlines()[:_MOST_COMPARED] for source in sources)
        changes = difflib.unified_diff(one, two, shown, other, lineterm="")
        st.code("\n".join(changes) or "They are the same.", language="diff")


def _source(run: Run, slug: str, *, imported: bool) -> str:
    """Return the script that ran; one put together anew where a run of this machine does not hold it."""
    code = run.measurement(slug).code
    if code is not None:
        return code.source
    if imported:
        return "# The file does not hold the script of this strategy.\n"
    try:
        return script_of(run.request, slug)
    except (KeyError, ValueError) as error:
        return f"# The script of this strategy is not known: {error}\n"


def _samples(result: Findings, version: Hashable, prefix: str) -> None:
    run, sampled = result.run, [row for row in result.rows if row.samples]
    if not sampled:
        st.caption("No sample was taken.")
        return
    picked = st.selectbox("Strategy", [_ALL, *(row.slug for row in sampled)], key="samples_of")
    drawn = [row for row in sampled if picked in (_ALL, row.slug)]
    slugs = [row.slug for row in drawn]
    frame: pa.Table = _memo.get((run.id, version, "samples", picked), lambda: packed(samples.frame(run, slugs)))
    st.html(look.legend_html([row.mapper for row in drawn], [row.mode for row in drawn], lines=False))
    words = f"{frame.num_rows:,} samples of {len(drawn)} {'strategy' if len(drawn) == 1 else 'strategies'}, by round."
    st.vega_lite_chart(frame, names.sized(samples.SPEC, frame), key=f"{prefix}samples", alt=words)
    words += " A point is one sample, the mean of some calls in a row; a line joins those of one process."
    if (every := samples.one_in(run, slugs)) > 1:
        words += f" One in {every} is drawn."
    if run.control and run.control.strategy in slugs:
        words += f" The control is {run.control.strategy}, entered twice."
    st.caption(look.named(words, slugs))


def _details(result: Findings, version: Hashable, prefix: str) -> None:
    """Draw all figures, the total of many calls, the machine and the method."""
    run, key = result.run, (result.run.id, version, result.baseline)
    table: pa.Table = _memo.get((*key, "table"), lambda: packed(_table(result)))
    config = {
        column.page: st.column_config.NumberColumn(format=column.unit.printf, help=column.help or None)
        if column.unit.printf
        else st.column_config.Column(help=column.help or None, pinned=column.page == "strategy")
        for column in columns("page", result)
    }
    st.dataframe(
        table, hide_index=True, key=f"{prefix}everything", column_config=config, row_height=_ROW_HEIGHT,
        height="content" if table.num_rows <= _MOST_ROWS else (1 + _MOST_ROWS) * _ROW_HEIGHT + 2,
        placeholder=look.MISSING, alt="The figures of all strategies",
    )  # fmt: skip
    if result.baseline:
        st.caption(f"× faster than {look.named(result.baseline, [result.baseline])}")
    _totals(result, _memo.get((*key, "totals"), lambda: packed(total_time.frame(result))), prefix)
    st.dataframe(
        pd.DataFrame([(name, str(value)) for name, value in _facts(run)], columns=["fact", "value"]),
        hide_index=True, key=f"{prefix}environment", height="content", alt="What the comparison was measured on",
    )  # fmt: skip


def _table(result: Findings) -> pd.DataFrame:
    """Return all figures of all strategies, as numbers that can be sorted and copied; milliseconds and MiB."""
    shown = columns("page", result)
    made = pd.DataFrame(
        [[column.number(row) for column in shown] for row in result.rows],
        columns=[column.page for column in shown],
    )
    return made.astype({column.page: column.unit.dtype for column in shown if column.unit.dtype})


def _totals(result: Findings, frame: pa.Table, prefix: str) -> None:
    if not frame.num_rows:
        return
    rows = [row for row in result.rows if row.outcome == "ok" and row.median_s is not None]
    sentence = break_even.sentence(break_even.stretches_of(result), result.missing)
    st.markdown(look.named(sentence, [row.slug for row in rows]))
    st.html(look.legend_html([row.mapper for row in rows], [row.mode for row in rows], lines=True))
    st.vega_lite_chart(frame, names.sized(total_time.SPEC, frame), key=f"{prefix}totals", alt=sentence)


def _facts(run: Run) -> list[tuple[str, object]]:
    """Return the machine's facts and the run's own, by name."""
    facts: list[tuple[str, object]] = [*environment.describe(run.environment)]
    reason = look.shortened(run.stop_reason, look.MOST_SIGNS)
    facts += [("run", run.id), ("created", run.created), ("status", run.status), ("ended because", reason)]
    facts += [("analysis", f"{run.analysis.method}; {run.analysis.confidence:.0%} intervals")]
    if run.limit is not None:
        facts.append((limit.FLOOR, limit.describe(run.limit)))
    if (control := run.control) is not None:
        ends = f"[{look.factor(control.low)}, {look.factor(control.high)}]"
        facts.append(("control", f"{control.strategy} entered twice: ratio {control.ratio:.3f} {ends}"))
    return facts
