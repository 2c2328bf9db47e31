"""Two strategies of a run side by side: how much faster, with what memory, by which ops, in which code and program."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from measure.model import why
from measure.model.run import Measurement, Run
from measure.model.why import Ran, Why
from measure.output.rows import Row
from measure.statistics import intervals
from measure.statistics.levels import shown_levels
from measure.subject import hlo
from views.charts import base, names, timeline
from views.result import diff
from views.result.why import text_of
from views.ui import look
from views.ui.memo import Memo, packed

_memo = Memo()
_HOW = "Open the tab «Why» to ask for it."
_ELSEWHERE = "«Measure again here» gives a run that can be asked for it."
_EXAMPLE = "A comparison of your own can be asked for it."


def draw(
    run: Run,
    version: int,
    rows: list[Row],
    prefix: str,
    *,
    source_of: Callable[[Run, str], str],
    imported: bool = False,
) -> None:
    """Draw the tab «Side by side». ``source_of`` returns the script of a strategy; ``imported``: the run comes from
    elsewhere."""
    slugs = [row.slug for row in rows]
    if len(slugs) < 2:
        st.caption("The run has only one strategy." if slugs else "The run has no strategy.")
        return
    left, right = st.columns(2)
    with left:
        a = _pick("One", slugs, f"{prefix}side_a", slugs[0])
    with right:
        others = [slug for slug in slugs if slug != a]
        b = _pick("Another", others, f"{prefix}side_b", others[0])
    one, other = run.measurement(a), run.measurement(b)
    st.markdown(look.plain(_memo.get((run.id, version, a, b), lambda: sentence(run, one, other))))
    _memory(run, version, one, other, prefix)
    how = _EXAMPLE if prefix else _ELSEWHERE if imported else _HOW
    _ops(one, other, prefix, how)
    st.markdown("**Code**")
    _texts(source_of(run, a), source_of(run, b), a, b)
    _programs(run, one, other, prefix, how)


def _pick(label: str, slugs: list[str], key: str, first: str) -> str:
    if st.session_state.get(key) not in slugs:
        st.session_state[key] = first
    return st.selectbox(label, slugs, key=key)


def sentence(run: Run, one: Measurement, other: Measurement) -> str:
    """Say how much faster one of two strategies is, with an interval, and how much memory each needs; plain text."""
    levels = shown_levels(run)
    parts = []
    if one.strategy in levels and other.strategy in levels:
        slow, fast = sorted((one, other), key=lambda item: -levels[item.strategy].log_mean)
        ratio = intervals.ratio(levels[slow.strategy], levels[fast.strategy], run.analysis.confidence)
        value, interval = look.factor_with_interval(ratio.ratio, ratio.low, ratio.high)
        words = f"{fast.strategy} is {value} {interval} as fast as {slow.strategy}"
        if _tie(run, one, other):
            # The ranking asks for more than this one interval does: it decides about all pairs at once, and about none
            # that is closer than the run can resolve.
            words += ": they tie in this run's ranking, so that may be chance"
        elif ratio.low <= 1:
            words += ": that may be chance"
        parts.append(words)
    else:
        missing = [item.strategy for item in (one, other) if item.strategy not in levels]
        parts.append(f"{' and '.join(missing)} {'have' if len(missing) > 1 else 'has'} no latency")
    if one.memory is not None and other.memory is not None:
        more, less = sorted((one, other), key=lambda item: -item.memory.peak_bytes if item.memory else 0)
        high, low = (item.memory.peak_bytes if item.memory else 0 for item in (more, less))
        parts.append(
            f"both need {look.size(high)}"
            if look.size(high) == look.size(low)
            else f"{more.strategy} needs {look.size(high)} of memory, {less.strategy} {look.size(low)}"
        )
    return f"{'; '.join(parts)}."


def _tie(run: Run, one: Measurement, other: Measurement) -> bool:
    return any({one.strategy, other.strategy} <= set(group) for group in run.ranking)


def _memory(run: Run, version: int, one: Measurement, other: Measurement, prefix: str) -> None:
    st.markdown("**Memory over one call**")
    chosen = timeline.known([one, other])
    if not chosen:
        st.caption("Neither has a timeline of its memory.")
        return
    st.html(look.legend_html([m.mapper for m in chosen], [m.mode for m in chosen], lines=True))
    key = (run.id, version, "side", *(item.strategy for item in chosen))
    frame = _memo.get(key, lambda: packed(base.revised(timeline.frame(chosen, share=True), *key)))
    st.vega_lite_chart(
        frame, names.sized(timeline.specification(share=True), frame), key=f"{prefix}side_timeline",
        alt=f"Memory held over one call of {' and '.join(item.strategy for item in chosen)}",
    )  # fmt: skip
    if len(chosen) == 1:
        st.caption(f"Only {look.plain(chosen[0].strategy)} has a timeline.")


def _ops(one: Measurement, other: Measurement, prefix: str, how: str) -> None:
    st.markdown("**Ops and kernels** of one call")
    explained = [(item, known) for item in (one, other) if (known := why.known(item.why)) is not None]
    if len(explained) < 2:
        missing = [item for item in (one, other) if why.known(item.why) is None]
        # What did not get through a call has nothing to be asked for.
        never = not all(item.outcome in ("ok", "wrong") for item in missing)
        names = look.plain(" and ".join(item.strategy for item in missing))
        st.caption(f"What runs in a call of {names} is not known{'.' if never else f'. {how}'}")
        return
    frame = op_table(*explained[0], *explained[1])
    if frame.empty:
        st.caption("Neither runs an op of TensorFlow's.")
        return
    st.dataframe(
        frame, hide_index=True, key=f"{prefix}side_ops", placeholder=look.MISSING,
        alt=f"Ops of {one.strategy} beside those of {other.strategy}",
        column_config={"op or kernel": st.column_config.TextColumn(pinned=True)},
    )  # fmt: skip
    st.caption(f"Δ: how much more {look.plain(other.strategy)} has than {look.plain(one.strategy)}.")


def op_table(one: Measurement, of_one: Why, other: Measurement, of_other: Why) -> pd.DataFrame:
    """Return ops and kernels of both, by kind and name, those that take longest first: how often and how long, and how
    much more of each ``other`` has than ``one``."""
    a, b = _ran(of_one), _ran(of_other)
    longest = {key: max(ran[key].seconds for ran in (a, b) if key in ran) for key in {*a, *b}}
    lines = []
    for key in sorted(longest, key=lambda key: (-longest[key], key)):
        kind, name = key
        line: dict[str, str | None] = {"op or kernel": name, "kind": kind}
        before, after = (ran.get(key, Ran(name=name, count=0)) for ran in (a, b))
        line["Δ count"] = _signed(after.count - before.count, lambda count: f"{count:,.0f}")
        line["Δ time"] = _signed(after.seconds - before.seconds, look.seconds)
        for item, ran in ((one, a), (other, b)):
            line[f"{item.strategy}: count"] = f"{ran[key].count:,}" if key in ran else None
            line[f"{item.strategy}: time"] = look.seconds(ran[key].seconds) if key in ran else None
        lines.append(line)
    return pd.DataFrame(lines)


def _ran(explained: Why) -> dict[tuple[str, str], Ran]:
    """Return ops and kernels by kind and name: an op and a kernel can have the same name, and the rest that a table
    leaves out is «other» in both."""
    ops = {("op", op.name): op for op in why.op_rows(explained)}
    return ops | {("kernel", kernel.name): kernel for kernel in explained.kernels}


def _signed(value: float, show: Callable[[float], str]) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{show(abs(value))}"


def _texts(left: str, right: str, a: str, b: str) -> None:
    if left == right:
        st.caption("They are the same.")
    else:
        st.html(diff.side_by_side(left, right, a, b))


def _has_program(item: Measurement) -> bool:
    """True if XLA compiles a strategy, or its element function by itself."""
    return item.mode == "xla" or item.options.get("jit_compile") is True


def _programs(run: Run, one: Measurement, other: Measurement, prefix: str, how: str) -> None:
    """Draw XLA's programs side by side, where both have one."""
    compiled = [item for item in (one, other) if _has_program(item)]
    if not compiled:
        return
    st.markdown("**Optimised HLO**")
    if len(compiled) == 1:
        name = look.plain(compiled[0].strategy)
        st.caption(f"Only {name} is compiled by XLA, so there are no two programs to compare.")
        return
    texts = [] if prefix else [text_of(run, item.strategy, why.HLO) for item in (one, other)]
    if not all(texts) or not texts:
        st.caption(f"XLA's programs are not known. {how}")
        return
    element = [look.plain(item.strategy) for item in compiled if item.mode != "xla"]
    of = f" That of {' and that of '.join(element)} is the element function's alone." if element else ""
    st.caption(f"Without metadata; the tab «Why» has the whole texts.{of}")
    _texts(hlo.comparable(texts[0]), hlo.comparable(texts[1]), one.strategy, other.strategy)
