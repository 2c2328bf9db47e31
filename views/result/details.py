"""The details of a comparison, in tabs: table, break even, why, samples, memory over one call, code, environment."""

import difflib
from collections.abc import Callable
from functools import partial

import pandas as pd
import pyarrow as pa
import streamlit as st

from measure.judge import limit
from measure.machine import environment
from measure.output.rows import Row
from measure.run.request import script_of
from measure.run.run import Measurement, Run
from views.charts import base, names, samples, timeline, totals
from views.result import strategy_table, tables, texts, why
from views.ui import guard, look, scroll
from views.ui.memo import Memo, packed

_memo = Memo(__name__)
_PAIR_WIDTH = 190  # pixels: room for the longest break-even point in words
_MOST_COMPARED = 1_500  # lines of two scripts: nobody reads the changes of more
_VECTORISED = "tf.vectorized_map("  # in a script: whatever name the strategy has


def draw(run: Run, version: int, rows: list[Row], baseline: str | None, prefix: str, *, imported: bool) -> None:
    """Draw the tabs, of which only the open one has a body. ``imported``: the run comes from elsewhere, and its code
    from anybody."""
    tabs: dict[str, Callable[[Run, int, list[Row], str], None]] = {
        texts.TAB_TABLE: partial(strategy_table.draw, baseline=baseline),
        texts.TAB_BREAK_EVEN: _break_even,
        texts.TAB_WHY: partial(why.draw, imported=imported),
        texts.TAB_SAMPLES: _samples,
        texts.TAB_MEMORY: _memory,
        texts.TAB_CODE: _imported_code if imported else _code,
        texts.TAB_ENVIRONMENT: _environment,
    }
    with st.container(key=f"{prefix}tabs"):
        drawn = st.tabs(list(tabs), key="tab", on_change="rerun", bind="query-params")
        for tab, (name, body) in zip(drawn, tabs.items(), strict=True):
            if tab.open:
                with tab, guard.calm(texts.THE_TAB.format(tab=name)):
                    body(run, version, rows, prefix)
    scroll.follow(f"{prefix}tabs")


def show(tab: str, prefix: str) -> None:
    """Open a tab, and have the page show it."""
    st.session_state["tab"] = tab
    scroll.ask(f"{prefix}tabs")


def _frame(key: tuple[object, ...], make: Callable[[], pd.DataFrame]) -> pa.Table:
    """Return the table that fills a chart, made once for a version of a run and a choice within it."""
    return _memo.get(key, lambda: packed(base.revised(make(), *key)))


def _break_even(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    frame = _frame((run.id, version, "totals"), lambda: totals.frame(rows))
    if not frame.num_rows:
        st.caption(texts.NO_TOTALS)
        return
    sentence = totals.sentence(totals.cheapest(rows))
    st.markdown(look.plain(sentence))
    timed = [row for row in rows if row.outcome == "ok" and row.median_s is not None]
    st.html(look.legend_html([row.mapper for row in timed], [row.mode for row in timed], lines=True))
    st.vega_lite_chart(frame, names.sized(totals.SPEC, frame), key=f"{prefix}totals", alt=sentence)
    st.caption(texts.TOTALS_ABOUT)
    table = _memo.get((run.id, version, "break even"), lambda: packed(tables.break_even_frame(run)))
    if table.num_rows:
        st.dataframe(
            table, hide_index=True, key=f"{prefix}break_even", height="content",
            column_config={
                name: st.column_config.TextColumn(name, pinned=not number, width=_PAIR_WIDTH if number else None)
                for number, name in enumerate(table.column_names)
            },
            alt=texts.BREAK_EVEN_ALT,
        )  # fmt: skip
        st.caption(look.plain(tables.break_even_note(run)))


def _pick(label: str, slugs: list[str], key: str, *first: str) -> str:
    options = [*first, *slugs]
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[0]
    return st.selectbox(label, options, key=key)


def _samples(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    slugs = [row.slug for row in rows if row.samples]
    if not slugs:
        st.caption(texts.NO_SAMPLE)
        return
    picked = _pick(texts.STRATEGY, slugs, "samples_of", texts.ALL)
    chosen = slugs if picked == texts.ALL else [picked]
    frame = _frame((run.id, version, "samples", picked), lambda: samples.frame(run, chosen))
    drawn = [row for row in rows if row.slug in chosen]
    st.html(look.legend_html([row.mapper for row in drawn], [row.mode for row in drawn], lines=False))
    of = texts.SAMPLES_OF_ONE if len(chosen) == 1 else texts.SAMPLES_OF
    count = of.format(samples=frame.num_rows, strategies=len(chosen))
    st.vega_lite_chart(
        frame, names.sized(samples.SPEC, frame), key=f"{prefix}samples",
        alt=texts.SAMPLES_ALT.format(samples=count),
    )  # fmt: skip
    every = samples.one_in(run, chosen)
    control = texts.SAMPLES_ONE_IN.format(every=every) if every > 1 else ""
    if run.control and run.control.strategy in chosen:
        control += texts.SAMPLES_CONTROL.format(strategy=look.plain(run.control.strategy))
    st.caption(texts.SAMPLES_ABOUT.format(samples=count, control=control))


def _memory(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    known = {m.strategy: m for m in timeline.known(run.measurements)}
    slugs = [row.slug for row in rows if row.slug in known]
    if not slugs:
        st.caption(texts.NO_TIMELINES)
        return
    three = timeline.telling([row for row in rows if row.slug in known])
    groups = {texts.THREE: three, texts.ALL: slugs} if len(slugs) > len(three) else {texts.ALL: slugs}
    picked = _pick(texts.STRATEGY, slugs, "memory_of", *groups)
    share = picked in groups
    chosen = [known[slug] for slug in groups.get(picked, [picked])]
    st.html(look.legend_html([m.mapper for m in chosen], [m.mode for m in chosen], lines=True))
    peak = max(chosen, key=lambda m: m.memory.peak_bytes if m.memory else 0)
    most = look.size(peak.memory.peak_bytes if peak.memory else None)
    frame = _frame((run.id, version, "timeline", picked), lambda: timeline.frame(chosen, share=share))
    st.vega_lite_chart(
        frame,
        names.sized(timeline.specification(share=share), frame),
        key=f"{prefix}timeline_{share}",
        alt=texts.TIMELINE_ALT.format(size=most, strategy=peak.strategy),
    )
    st.caption(texts.TIMELINE_ABOUT + (texts.THREE_ABOUT if picked == texts.THREE else ""))
    if not share:
        _at_peak(chosen[0])


def _at_peak(m: Measurement) -> None:
    if m.memory is None or not m.memory.at_peak:
        return
    st.markdown(texts.AT_PEAK.format(size=look.size(m.memory.peak_bytes)))
    frame = pd.DataFrame(
        [
            {texts.OP: part.op or texts.OP_UNNAMED, texts.HELD: look.size(part.bytes),
             texts.SHARE: look.percent(part.bytes / m.memory.peak_bytes) if m.memory.peak_bytes else look.MISSING}
            for part in m.memory.at_peak
        ]
    )  # fmt: skip
    st.dataframe(frame, hide_index=True, key="at_peak", alt=texts.AT_PEAK_ALT.format(strategy=m.strategy))


def _source(run: Run, slug: str) -> str:
    """Return the script that ran; one put together anew where a run does not hold it."""
    m = run.measurement(slug)
    if m.code is not None:
        return m.code.source
    try:
        return script_of(run.request, slug)
    except (KeyError, ValueError) as error:
        return texts.SCRIPT_UNKNOWN.format(error=error)


def _held(run: Run, slug: str) -> str:
    """Return the script that the run holds, and no other."""
    code = run.measurement(slug).code
    return code.source if code is not None else texts.SCRIPT_NOT_HELD


def _imported_code(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    st.warning(texts.CODE_IMPORTED, icon=":material/upload_file:")
    _scripts(run, rows, _held)


def _code(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    st.caption(texts.CODE_ABOUT)
    _scripts(run, rows, _source)


def _scripts(run: Run, rows: list[Row], source_of: Callable[[Run, str], str]) -> None:
    slugs = [row.slug for row in rows]
    if not slugs:
        st.caption(texts.NO_STRATEGY)
        return
    left, right = st.columns(2)
    with left:
        shown = _pick(texts.SCRIPT_OF, slugs, "code_of")
    with right:
        other = _pick(texts.COMPARED_WITH, [slug for slug in slugs if slug != shown], "code_against", texts.NONE)
    source = source_of(run, shown)
    if other == texts.NONE:
        _trap(source)
        st.code(source, line_numbers=True)
        return
    its = source_of(run, other)
    _trap(source, its)
    one, two = (text.splitlines()[:_MOST_COMPARED] for text in (source, its))
    changes = difflib.unified_diff(one, two, shown, other, lineterm="")
    st.code("\n".join(changes) or texts.SAME_TEXTS, language="diff")
    st.caption(texts.BOTH_SCRIPTS.format(one=look.plain(shown), other=look.plain(other)))
    st.code(source, height=220)
    st.code(its, height=220)


def _trap(*sources: str) -> None:
    if any(_VECTORISED in source for source in sources):
        st.caption(texts.VECTORISED)


def _environment(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    facts = [*environment.describe(run.environment), *_about(run)]
    frame = pd.DataFrame([{texts.FACT: str(label), texts.VALUE: str(value)} for label, value in facts])
    st.dataframe(
        frame, hide_index=True, key="environment", height="content", alt=texts.ENVIRONMENT_ALT,
        column_config={texts.FACT: st.column_config.TextColumn(width="medium"),
                       texts.VALUE: st.column_config.TextColumn(width="large")},
    )  # fmt: skip


def _about(run: Run) -> list[tuple[str, str]]:
    facts = [(texts.FACT_RUN, run.id), (texts.FACT_CREATED, run.created)]
    facts += [(texts.FACT_STATUS, run.status), (texts.FACT_END, run.stop_reason)]
    analysis = texts.ANALYSIS.format(method=run.analysis.method, confidence=run.analysis.confidence)
    facts += [(texts.FACT_ANALYSIS, analysis)]
    if run.limit is not None:
        facts.append((limit.FLOOR, limit.describe(run.limit)))
        facts.append((texts.FACT_PROBES, limit.probes(run.limit)))
    if run.control is not None:
        control = texts.CONTROL.format(
            strategy=run.control.strategy, ratio=run.control.ratio, low=look.factor(run.control.low),
            high=look.factor(run.control.high),
        )  # fmt: skip
        facts.append((texts.FACT_CONTROL, control))
    return facts
