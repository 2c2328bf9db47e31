"""A comparison's result from top to bottom: the answer and the next step, the picture with its rows, the tabs, what did
not work."""

from collections.abc import Hashable
from functools import partial
from typing import Literal

import pyarrow as pa
import streamlit as st
from msgspec import UNSET
from msgspec.structs import replace

import strategies
import workloads
from measure import hosting
from measure.judge import answer
from measure.judge.findings import Findings, Word, findings
from measure.judge.verdict import verdict
from measure.run import text
from measure.run.request import MOST_BUDGET_S, RequestError, again
from measure.run.run import Run
from measure.store.store import Snapshot
from strategies import script
from views.charts import latency_memory_error
from views.choices.address import option_key, size_key
from views.result import actions, heading, lookup, pair, problems, progress, tabs
from views.ui import guard, look
from views.ui.memo import Memo, packed
from workloads import places

_memo = Memo(__name__)
# The answer and, before it, the bar have one place: the picture below it stays where it is when a run ends. Of the
# session: the run whose bar was shown last.
_PLACE, _WATCHED = "<style>.st-key-place {min-height: 9.75rem}</style>", "watched_run"
_COLOURS: dict[Word, Literal["green", "blue", "orange", "red", "gray"]] = {
    "clear": "green", "tie": "blue", "cannot tell": "orange", "too noisy": "red", "too short": "red",
    "no choice": "gray", "nothing": "gray",
}  # fmt: skip
ENDED = {"cancelled": "Cancelled", "interrupted": "Interrupted", "budget": "The time budget was spent"}
_KEPT = "what was measured is kept"
# While samples are taken, figures sharpen little by little: a picture of them costs a hundredth of a second of a core.
_SHARPER_S = 6.0
_Picture = tuple[pa.Table, dict[str, object], str, str]


def draw_comparison(
    run: Run, version: Hashable, *, finished: bool, baseline: str | None, prefix: str = "", imported: bool = False
) -> None:
    """Draw a comparison that has ended, or a point of a sweep that may not have. Nothing is computed anew while
    ``version``, that of its results, stays; ``prefix`` begins the keys; ``imported``: its code may be anybody's."""
    key = (run.id, version, finished, baseline)
    result = _memo.get(key, lambda: findings(run, baseline))
    with guard.calm("the result"):
        if st.session_state.get(_WATCHED) == run.id:
            st.html(_PLACE)
        if finished:
            _answer(result, key, prefix, imported=imported)
        else:
            heading.draw_doubts(heading.doubts_of(result))
        if finished and not prefix and pair.draw(run, version, baseline):
            return
        _draw_picture(_memo.get((*key, "picture"), lambda: _picture(result)), prefix)
    if finished:
        tabs.draw(result, version, prefix, imported=imported)
    with guard.calm("the rest of the result"):
        if not (finished and problems.nothing_worked(result)):  # which is the answer then
            problems.draw_failures(result, prefix)
        problems.draw_notes(result)


def draw_large(run: Run, version: Hashable, baseline: str | None) -> None:
    """Draw the verdict and the picture of a comparison that has ended, and nothing to press."""
    key = (run.id, version, True, baseline)
    result = _memo.get(key, lambda: findings(run, baseline))
    heading.headline(_memo.get((*key, "verdict"), lambda: verdict(result)), [row.slug for row in result.rows])
    heading.draw_doubts(heading.doubts_of(result))
    _draw_picture(_memo.get((*key, "picture"), lambda: _picture(result)))


# --- the answer ------------------------------------------------------------------------------------------------------


def _answer(result: Findings, key: tuple[object, ...], prefix: str, *, imported: bool) -> None:
    """Draw the line that answers; below it the next step and what would change the answer, beside the code to take."""
    names = [row.slug for row in result.rows]
    code = result.take.measurement.code if result.take and not imported else None
    lines = _memo.get((*key, "code"), lambda: script.mapping(code.source)) if code else ""
    with st.container(key=f"{prefix}place", gap="small"):
        heading.headline(_memo.get((*key, "verdict"), lambda: verdict(result)), names)
        with st.container(key=f"{prefix}answer"):
            left, right = st.columns([0.55, 0.45], gap="medium") if lines else (st.container(), None)
            with left, st.container(gap="xsmall"):
                _next_step(result, key, prefix)
                heading.draw_doubts(heading.doubts_of(result))
                if not prefix:  # of a point, they stand at the top of its sweep
                    heading.draw_function(result.run)
                if problems.nothing_worked(result):
                    problems.draw_failures(result, prefix)
                if others := _memo.get((*key, "others"), lambda: answer.others(result)):
                    st.markdown("\n".join(f"- {look.named(line, names)}" for line in others))
            if right:
                # A long one scrolls, so that the picture stays in sight.
                height: Literal["content"] | int = "content" if lines.count("\n") < 12 else 300
                right.code(lines, language="python", wrap_lines=True, height=height)


def _next_step(result: Findings, key: tuple[object, ...], prefix: str) -> None:
    """Draw how sure the answer is, why the run ended before its time, and what can be done about either."""
    most_s = hosting.limits().budget_s or MOST_BUDGET_S
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{prefix}how_sure"):
        if result.word != "nothing":
            st.badge(result.word, color=_COLOURS[result.word])
        words, anew = ended(result), " «Measure again here» measures all of it."
        if places.viewer():
            asked, anew = None, ""
        else:
            asked = _memo.get((*key, "settling", strategies.version()), lambda: answer.settling(result, most_s))
        if asked is not None and not prefix:
            count = len(asked.strategies)
            st.button(
                f"Measure {'these' if count > 1 else 'it'} for {look.duration(asked.budget_s)}", key="settle",
                icon=":material/balance:", on_click=_settle, args=(result.run.id, asked.budget_s, asked.strategies),
                help=f"Measures {text.listed(asked.strategies, 5)} again, without the others.",
            )  # fmt: skip
        if words:
            st.caption(f":material/info: {look.plain(words)}{'' if asked or prefix else anew}", width="content")
        # A sweep's points are other sizes, and a workload that is not here cannot be swept.
        can_sweep = prefix != "point_" and result.run.request.workload in workloads.names()
        if result.take is not None and not places.viewer() and can_sweep:
            st.page_link(
                "views/pages/sweep.py", label="Other sizes: sweep the batch", icon=":material/stacked_line_chart:",
                query_params=_swept(result),
            )  # fmt: skip


def ended(result: Findings) -> str:
    """Say why a run ended before it was complete, where the headline does not: who had no time is named there."""
    run = result.run
    if run.status not in ENDED or (run.status == "budget" and result.word != "nothing"):
        return ""
    words, reason = ENDED[run.status], run.stop_reason.removesuffix(f"; {_KEPT}").rstrip(".")
    reason = look.shortened(reason, look.MOST_SIGNS)
    words += f": {reason}." if run.status == "interrupted" and reason else "."
    has_some = any(item.memory or item.latency for item in run.measurements)
    return f"{words} {look.sentence(_KEPT)}" if has_some else words


def _settle(run_id: str, budget_s: float, slugs: list[str]) -> None:
    """Measure anew what the answer leaves open, with a budget that is enough."""
    try:
        actions.start(again(lookup.find(run_id).run.request, strategies=slugs, budget_s=budget_s, max_budget_s=UNSET))
    except RequestError as error:
        st.session_state["notices"] = (f"This cannot be measured here: {error}.",)


def _swept(result: Findings) -> dict[str, str | list[str]]:
    """Return the query parameters with which the Sweep page sweeps the batch of a comparison."""
    request = result.run.request
    sizes = {size_key(name): str(value) for name, value in request.size.items() if name != "batch"}
    options = {option_key(name): str(value) for name, value in request.workload_options.items()}
    fixed = {"workload": request.workload, "dtype": request.dtype, "device": request.place}
    return {**fixed, **sizes, **options, "strategies": list(request.strategies) or ["default"]}


# --- the picture -----------------------------------------------------------------------------------------------------


def draw_running(snapshot: Snapshot, baseline: str | None) -> None:
    """Draw the bar and the picture of a run that waits or is measured, which fills in."""
    st.session_state[_WATCHED] = snapshot.run.id
    st.html(_PLACE)
    progress.watch(snapshot, partial(_answer_so_far, baseline), partial(_fill, baseline))


def _answer_so_far(baseline: str | None, snapshot: Snapshot) -> None:
    """Draw the verdict of what was measured by now, or what comes first."""
    result = _memo.get(
        (snapshot.run.id, snapshot.version, baseline, "so far"), lambda: findings(snapshot.run, baseline)
    )
    if result.take is None:
        st.caption("Memory and correctness are measured first, then latencies. The answer appears here.")
    else:
        heading.headline(f"So far: {verdict(result)}", [row.slug for row in result.rows])


def _fill(baseline: str | None, snapshot: Snapshot) -> None:
    run, stages = snapshot.run, snapshot.stages
    is_sampled = snapshot.round_number is not None and snapshot.elapsed_s is not None
    moment = ("sampled", (snapshot.elapsed_s or 0.0) // _SHARPER_S) if is_sampled else snapshot.version
    key = (run.id, moment, baseline, *sorted(stages.items()))

    def made() -> _Picture:
        # The stages tell more than the results that are stored.
        now = [replace(m, stage=stages.get(m.strategy, m.stage)) for m in run.measurements]
        return _picture(findings(replace(run, measurements=now), baseline))

    with guard.calm("the picture"):
        _draw_picture(_memo.get(key, made))


def _picture(result: Findings) -> _Picture:
    """Return all of a picture: its frame, its specification, what it says and what its marks mean."""
    frame, drawn = packed(latency_memory_error.frame(result)), latency_memory_error.specification(result)
    caption = look.named(latency_memory_error.legend(result), [row.slug for row in result.rows])
    return frame, drawn, latency_memory_error.takeaway(result), caption


def _draw_picture(drawn: _Picture, prefix: str = "") -> None:
    frame, specification, takeaway, caption = drawn
    st.vega_lite_chart(frame, specification, key=f"{prefix}picture", alt=takeaway)
    st.caption(caption)
