"""The details of a comparison, in tabs: the table, break even, why, samples, memory over one call, two side by side,
code, environment."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import pyarrow as pa
import streamlit as st

from measure.judge import limit
from measure.machine import environment
from measure.model.request import case_of
from measure.model.run import Measurement, Run
from measure.output.rows import Row
from strategies import script
from views.charts import base, names, samples, timeline, totals
from views.result import diff, side_by_side, strategy_table, tables, why
from views.ui import guard, look, scroll
from views.ui.memo import Memo, packed

_memo = Memo()
_ALL, _THREE = "all", "the three that matter"
_NOTHING = "none"
_PAIR_WIDTH = 190  # pixels: room for the longest break-even point in words
_VECTORISED = "tf.vectorized_map("  # in a script: whatever name the strategy has


def draw(run: Run, version: int, rows: list[Row], baseline: str | None, prefix: str, *, imported: bool) -> None:
    """Draw the tabs, of which only the open one has a body. ``imported``: the run comes from elsewhere, and its code
    from anybody."""
    tabs: dict[str, Callable[[Run, int, list[Row], str], None]] = {
        "Table": partial(strategy_table.draw, baseline=baseline),
        "Break even": _break_even,
        "Why": partial(why.draw, imported=imported),
        "Samples": _samples,
        "Memory over one call": _memory,
        "Side by side": partial(side_by_side.draw, source_of=_held if imported else _source, imported=imported),
        "Code": _imported_code if imported else _code,
        "Environment": _environment,
    }
    with st.container(key=f"{prefix}tabs"):
        drawn = st.tabs(list(tabs), key="tab", on_change="rerun", bind="query-params")
        for tab, (name, body) in zip(drawn, tabs.items(), strict=True):
            if tab.open:
                with tab, guard.calm(f"the tab «{name}»"):
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
        st.caption("No strategy has both a first call and a latency.")
        return
    sentence = totals.sentence(totals.cheapest(rows))
    st.markdown(look.plain(sentence))
    timed = [row for row in rows if row.outcome == "ok" and row.median_s is not None]
    st.html(look.legend_html([row.mapper for row in timed], [row.mode for row in timed], lines=True))
    st.vega_lite_chart(frame, names.sized(totals.SPEC, frame), key=f"{prefix}totals", alt=sentence)
    st.caption("The first call traces and compiles; each further one costs the latency.")
    table = _memo.get((run.id, version, "break even"), lambda: packed(tables.break_even_frame(run)))
    if table.num_rows:
        st.dataframe(
            table, hide_index=True, key=f"{prefix}break_even", height="content",
            column_config={
                name: st.column_config.TextColumn(name, pinned=not number, width=_PAIR_WIDTH if number else None)
                for number, name in enumerate(table.column_names)
            },
            alt="For each compiled strategy, after how many calls it has cost less than each eager one",
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
        st.caption("No sample was taken.")
        return
    picked = _pick("Strategy", slugs, "samples_of", _ALL)
    chosen = slugs if picked == _ALL else [picked]
    frame = _frame((run.id, version, "samples", picked), lambda: samples.frame(run, chosen))
    drawn = [row for row in rows if row.slug in chosen]
    st.html(look.legend_html([row.mapper for row in drawn], [row.mode for row in drawn], lines=False))
    count = f"{frame.num_rows:,} samples of {len(chosen)} strateg{'ies' if len(chosen) > 1 else 'y'}"
    st.vega_lite_chart(
        frame, names.sized(samples.SPEC, frame), key=f"{prefix}samples",
        alt=f"{count}, by round; a line joins the samples of one process.",
    )  # fmt: skip
    st.caption(
        f"{count}. A point is one sample, the mean of some calls in a row; a line joins those of one process. "
        + (
            f"The control is {look.plain(run.control.strategy)}, entered twice."
            if run.control and run.control.strategy in chosen
            else ""
        )
    )


def _memory(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    known = {m.strategy: m for m in timeline.known(run.measurements)}
    slugs = [row.slug for row in rows if row.slug in known]
    if not slugs:
        st.caption("No strategy has a timeline of its memory.")
        return
    three = timeline.telling([row for row in rows if row.slug in known])
    groups = {_THREE: three, _ALL: slugs} if len(slugs) > len(three) else {_ALL: slugs}
    picked = _pick("Strategy", slugs, "memory_of", *groups)
    share = picked in groups
    chosen = [known[slug] for slug in groups.get(picked, [picked])]
    st.html(look.legend_html([m.mapper for m in chosen], [m.mode for m in chosen], lines=True))
    peak = max(chosen, key=lambda m: m.memory.peak_bytes if m.memory else 0)
    alt = f"Memory held over one call: the most is {look.size(peak.memory.peak_bytes if peak.memory else None)}."
    frame = _frame((run.id, version, "timeline", picked), lambda: timeline.frame(chosen, share=share))
    st.vega_lite_chart(
        frame,
        names.sized(timeline.specification(share=share), frame),
        key=f"{prefix}timeline_{share}",
        alt=f"{alt} ({peak.strategy})",
    )
    about = "One steady call; inputs and captured variables exist before it and are not counted."
    if picked == _THREE:
        about += " Drawn: the first, the one that needs the least, and the baseline or the one that needs the most."
    st.caption(about)
    if not share:
        _at_peak(chosen[0])


def _at_peak(m: Measurement) -> None:
    if m.memory is None or not m.memory.at_peak:
        return
    st.markdown(f"**Held at the peak of {look.size(m.memory.peak_bytes)}**, by the op that allocated it")
    frame = pd.DataFrame(
        [
            {"op": part.op or "not named", "memory": look.size(part.bytes),
             "share": look.percent(part.bytes / m.memory.peak_bytes) if m.memory.peak_bytes else look.MISSING}
            for part in m.memory.at_peak
        ]
    )  # fmt: skip
    st.dataframe(frame, hide_index=True, key="at_peak", alt=f"What held memory at the peak of {m.strategy}")


def _source(run: Run, slug: str) -> str:
    """Return the script that ran; one put together anew where a run does not hold it."""
    m = run.measurement(slug)
    if m.code is not None:
        return m.code.source
    request = run.request
    try:
        return script.build(case_of(request), slug, threads=request.threads, memory_limit_mib=request.memory_limit_mib)
    except (KeyError, ValueError) as error:
        return f"# The script of this strategy is not known: {error}\n"


def _held(run: Run, slug: str) -> str:
    """Return the script that the run holds, and no other."""
    code = run.measurement(slug).code
    return code.source if code is not None else "# The file does not hold the script of this strategy.\n"


def _imported_code(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    st.warning(
        "This code is from an imported file. It is shown as text, and nothing here has executed it: read it before you "
        "do.",
        icon=":material/upload_file:",
    )
    _scripts(run, rows, _held)


def _code(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    st.caption("Whole scripts: they run with TensorFlow and NumPy alone, and are the code that was measured.")
    _scripts(run, rows, _source)


def _scripts(run: Run, rows: list[Row], source_of: Callable[[Run, str], str]) -> None:
    slugs = [row.slug for row in rows]
    if not slugs:
        st.caption("The run has no strategy.")
        return
    left, right = st.columns(2)
    with left:
        shown = _pick("Script of", slugs, "code_of")
    with right:
        other = _pick("Compared with", [slug for slug in slugs if slug != shown], "code_against", _NOTHING)
    source = source_of(run, shown)
    if other == _NOTHING:
        _trap(source)
        st.code(source, line_numbers=True)
        return
    its = source_of(run, other)
    _trap(source, its)
    st.html(diff.side_by_side(source, its, shown, other))
    st.caption(f"Both scripts, to copy: first {look.plain(shown)}, then {look.plain(other)}.")
    st.code(source, height=220)
    st.code(its, height=220)


def _trap(*sources: str) -> None:
    if any(_VECTORISED in source for source in sources):
        st.caption(
            ":material/info: Of the elements that `tf.vectorized_map` maps at once, `tf.print` and assertions in the "
            "function run for one only, without a warning."
        )


def _environment(run: Run, version: int, rows: list[Row], prefix: str) -> None:
    facts = [*environment.describe(run.environment), *_about(run)]
    frame = pd.DataFrame([{"fact": str(label), "value": str(value)} for label, value in facts])
    st.dataframe(
        frame, hide_index=True, key="environment", height="content", alt="What the comparison was measured on",
        column_config={"fact": st.column_config.TextColumn(width="medium"),
                       "value": st.column_config.TextColumn(width="large")},
    )  # fmt: skip


def _about(run: Run) -> list[tuple[str, str]]:
    facts = [("run", run.id), ("created", run.created), ("status", run.status), ("ended because", run.stop_reason)]
    facts += [("analysis", f"{run.analysis.method}; {run.analysis.confidence:.0%} intervals")]
    if run.limit is not None:
        facts.append((limit.FLOOR, limit.describe(run.limit)))
        facts.append(("probes", limit.probes(run.limit)))
    if run.control is not None:
        low, high = look.factor(run.control.low), look.factor(run.control.high)
        facts.append(
            ("control", f"{run.control.strategy} entered twice: ratio {run.control.ratio:.3f} [{low}, {high}]")
        )
    return facts
