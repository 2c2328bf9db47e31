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
from views.result import diff, texts
from views.result.why import text_of
from views.ui import look
from views.ui.memo import Memo, packed

_memo = Memo(__name__)


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
        st.caption(texts.ONE_STRATEGY if slugs else texts.NO_STRATEGY)
        return
    left, right = st.columns(2)
    with left:
        a = _pick(texts.ONE, slugs, f"{prefix}side_a", slugs[0])
    with right:
        others = [slug for slug in slugs if slug != a]
        b = _pick(texts.OTHER, others, f"{prefix}side_b", others[0])
    one, other = run.measurement(a), run.measurement(b)
    st.markdown(look.plain(_memo.get((run.id, version, a, b), lambda: sentence(run, one, other))))
    _memory(run, version, one, other, prefix)
    how = texts.HOW_EXAMPLE if prefix else texts.HOW_IMPORTED if imported else texts.HOW_HERE
    _ops(one, other, prefix, how)
    st.markdown(texts.SIDE_CODE)
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
        factor, interval = look.factor_with_interval(ratio.ratio, ratio.low, ratio.high)
        words = texts.PAIR_RATIO.format(fast=fast.strategy, factor=factor, interval=interval, slow=slow.strategy)
        if _tie(run, one, other):
            # The ranking asks for more than this one interval does: it decides about all pairs at once, and about none
            # that is closer than the run can resolve.
            words = texts.PAIR_TIES.format(ratio=words)
        elif ratio.low <= 1:
            words = texts.PAIR_CHANCE.format(ratio=words)
        parts.append(words)
    else:
        missing = [item.strategy for item in (one, other) if item.strategy not in levels]
        untimed = texts.ONE_UNTIMED if len(missing) == 1 else texts.BOTH_UNTIMED
        parts.append(untimed.format(one=missing[0], other=missing[-1]))
    if one.memory is not None and other.memory is not None:
        more, less = sorted((one, other), key=lambda item: -item.memory.peak_bytes if item.memory else 0)
        high, low = (look.size(item.memory.peak_bytes if item.memory else 0) for item in (more, less))
        parts.append(
            texts.SAME_MEMORY.format(size=high)
            if high == low
            else texts.PAIR_MEMORY.format(more=more.strategy, high=high, less=less.strategy, low=low)
        )
    return f"{'; '.join(parts)}."


def _tie(run: Run, one: Measurement, other: Measurement) -> bool:
    return any({one.strategy, other.strategy} <= set(group) for group in run.ranking)


def _memory(run: Run, version: int, one: Measurement, other: Measurement, prefix: str) -> None:
    st.markdown(texts.SIDE_TIMELINE)
    chosen = timeline.known([one, other])
    if not chosen:
        st.caption(texts.NEITHER_TIMELINE)
        return
    st.html(look.legend_html([m.mapper for m in chosen], [m.mode for m in chosen], lines=True))
    key = (run.id, version, "side", *(item.strategy for item in chosen))
    frame = _memo.get(key, lambda: packed(base.revised(timeline.frame(chosen, share=True), *key)))
    st.vega_lite_chart(
        frame, names.sized(timeline.specification(share=True), frame), key=f"{prefix}side_timeline",
        alt=texts.SIDE_TIMELINE_ALT.format(strategies=texts.AND.join(item.strategy for item in chosen)),
    )  # fmt: skip
    if len(chosen) == 1:
        st.caption(texts.ONLY_TIMELINE.format(strategy=look.plain(chosen[0].strategy)))


def _ops(one: Measurement, other: Measurement, prefix: str, how: str) -> None:
    st.markdown(texts.SIDE_OPS)
    explained = [(item, known) for item in (one, other) if (known := why.known(item.why)) is not None]
    if len(explained) < 2:
        missing = [item for item in (one, other) if why.known(item.why) is None]
        # What did not get through a call has nothing to be asked for.
        never = not all(item.outcome in ("ok", "wrong") for item in missing)
        slugs = look.plain(texts.AND.join(item.strategy for item in missing))
        st.caption((texts.OPS_UNKNOWN if never else texts.OPS_UNASKED).format(strategies=slugs, how=how))
        return
    frame = op_table(*explained[0], *explained[1])
    if frame.empty:
        st.caption(texts.NO_OPS)
        return
    st.dataframe(
        frame, hide_index=True, key=f"{prefix}side_ops", placeholder=look.MISSING,
        alt=texts.SIDE_OPS_ALT.format(one=one.strategy, other=other.strategy),
        column_config={texts.OP_OR_KERNEL: st.column_config.TextColumn(pinned=True)},
    )  # fmt: skip
    st.caption(texts.SIDE_OPS_ABOUT.format(other=look.plain(other.strategy), one=look.plain(one.strategy)))


def op_table(one: Measurement, of_one: Why, other: Measurement, of_other: Why) -> pd.DataFrame:
    """Return ops and kernels of both, by kind and name, those that take longest first: how often and how long, and how
    much more of each ``other`` has than ``one``."""
    a, b = _ran(of_one), _ran(of_other)
    longest = {key: max(ran[key].seconds for ran in (a, b) if key in ran) for key in {*a, *b}}
    lines = []
    for key in sorted(longest, key=lambda key: (-longest[key], key)):
        kind, name = key
        line: dict[str, str | None] = {texts.OP_OR_KERNEL: name, texts.KIND: kind}
        before, after = (ran.get(key, Ran(name=name, count=0)) for ran in (a, b))
        line[texts.COUNT_CHANGE] = _signed(after.count - before.count, lambda count: f"{count:,.0f}")
        line[texts.TIME_CHANGE] = _signed(after.seconds - before.seconds, look.seconds)
        for item, ran in ((one, a), (other, b)):
            line[texts.COUNT_OF.format(strategy=item.strategy)] = f"{ran[key].count:,}" if key in ran else None
            line[texts.TIME_OF.format(strategy=item.strategy)] = look.seconds(ran[key].seconds) if key in ran else None
        lines.append(line)
    return pd.DataFrame(lines)


def _ran(explained: Why) -> dict[tuple[str, str], Ran]:
    """Return ops and kernels by kind and name: an op and a kernel can have the same name, and the rest that a table
    leaves out is «other» in both."""
    ops = {(texts.OP, op.name): op for op in why.op_rows(explained)}
    return ops | {(texts.KERNEL, kernel.name): kernel for kernel in explained.kernels}


def _signed(value: float, show: Callable[[float], str]) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{show(abs(value))}"


def _texts(left: str, right: str, a: str, b: str) -> None:
    if left == right:
        st.caption(texts.SAME_TEXTS)
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
    st.markdown(texts.SIDE_HLO)
    if len(compiled) == 1:
        st.caption(texts.ONLY_COMPILED.format(strategy=look.plain(compiled[0].strategy)))
        return
    programs = [] if prefix else [text_of(run, item.strategy, why.HLO) for item in (one, other)]
    if not all(programs) or not programs:
        st.caption(texts.NO_PROGRAMS.format(how=how))
        return
    element = [look.plain(item.strategy) for item in compiled if item.mode != "xla"]
    about = texts.PROGRAMS_ABOUT
    if element:
        alone = texts.ONE_ELEMENT_ALONE if len(element) == 1 else texts.BOTH_ELEMENT_ALONE
        about += alone.format(one=element[0], other=element[-1])
    st.caption(about)
    _texts(hlo.comparable(programs[0]), hlo.comparable(programs[1]), one.strategy, other.strategy)
