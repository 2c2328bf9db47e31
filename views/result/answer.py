"""The answer at the top of a comparison: the line that answers, the code to take, and what would change it."""

from typing import Literal

import streamlit as st

from measure import hosting
from measure.judge import answer
from measure.judge.findings import Findings, Word
from measure.judge.verdict import verdict
from measure.run.request import RequestError
from measure.run.run import Run
from strategies import script
from views.result import actions, heading
from views.ui import look
from views.ui.memo import Memo
from views.ui.parameters import option_key, size_key
from workloads import places

_memo = Memo(__name__)
_COLOURS: dict[Word, Literal["green", "blue", "orange", "red", "gray"]] = {
    "clear": "green", "tie": "blue", "cannot tell": "orange", "too noisy": "red", "too short": "red",
    "no choice": "gray", "nothing": "gray",
}  # fmt: skip
_ENDED = {"cancelled": "Cancelled", "interrupted": "Interrupted", "budget": "The time budget was spent"}
_SWEEP = "views/pages/sweep.py"


def draw(result: Findings, version: int, prefix: str, *, imported: bool) -> None:
    """Draw the answer of a run that has ended. ``prefix`` begins the widgets' keys; ``imported``: its code may be
    anybody's."""
    run, key = result.run, (result.run.id, version, result.baseline)
    names = [row.slug for row in result.rows]
    heading.headline(_memo.get((*key, "verdict"), lambda: verdict(result)), names)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{prefix}how_sure"):
        if result.word != "nothing":
            st.badge(result.word, color=_COLOURS[result.word])
        if not prefix:
            _settle(result, key)
        if run.status != "complete" and (run.status, result.word) != ("budget", "clear"):  # which is no doubt
            _ended(run)
    heading.draw_warnings(result)
    if not prefix:  # of a point, they stand at the top of its sweep
        heading.draw_function(run)
    if result.take is not None:
        with st.container(key=f"{prefix}answer"):
            left, right = st.columns([0.5, 0.5], gap="medium")
            with left:
                _code(result, key, imported=imported)
            with right:
                others = _memo.get((*key, "others"), lambda: answer.others(result))
                st.markdown("\n".join(f"- {look.named(line, names)}" for line in others))
                if not places.viewer():
                    st.page_link(
                        _SWEEP, label="Other sizes: sweep the batch", icon=":material/stacked_line_chart:",
                        query_params=_swept(run),
                    )  # fmt: skip


def _ended(run: Run) -> None:
    words = _ENDED.get(run.status, run.status)
    if run.status == "interrupted" and run.stop_reason:
        words = f"{words}: {run.stop_reason}"
    kept = "" if "is kept" in words else " What was measured is kept."
    st.caption(f":material/info: {look.plain(words)}.{kept}", width="content")


def _code(result: Findings, key: tuple[object, ...], *, imported: bool) -> None:
    """Draw the lines that map, of the strategy to take."""
    code = result.leaders[0].measurement.code
    lines = "" if code is None or imported else _memo.get((*key, "mapping"), lambda: script.mapping(code.source))
    if lines:
        st.code(lines, language="python", wrap_lines=True)


def _settle(result: Findings, key: tuple[object, ...]) -> None:
    """Draw the button that measures anew what the answer leaves open, with a budget that is enough."""
    most_s = hosting.limits().budget_s or answer.SETTLING_S
    request = None if places.viewer() else _memo.get((*key, "settling"), lambda: answer.settling(result, most_s))
    if request is None:
        return
    count = len(request.strategies)
    st.button(
        f"Measure {count} for {request.budget_s:.0f} s", key="settle",
        icon=":material/balance:", on_click=_start, args=(result.run.id, request.budget_s, request.strategies),
        help=f"{'These strategies take' if count > 1 else 'It takes'} turns, with nothing else alive, in as many "
        "processes as that allows.",
    )  # fmt: skip


def _start(run_id: str, budget_s: float, slugs: list[str]) -> None:
    from measure.run.request import again
    from views.result import lookup

    try:
        actions.start(again(lookup.find(run_id).request, strategies=slugs, budget_s=budget_s))
    except RequestError as error:
        st.session_state["notices"] = (f"This cannot be measured here: {error}.",)


def _swept(run: Run) -> dict[str, str | list[str]]:
    """Return the query parameters with which the Sweep page sweeps the batch of a comparison."""
    request = run.request
    parameters: dict[str, str | list[str]] = {"workload": request.workload, "dtype": request.dtype}
    parameters |= {size_key(name): str(value) for name, value in request.size.items() if name != "batch"}
    parameters |= {option_key(name): str(value) for name, value in request.workload_options.items()}
    return {**parameters, "device": request.device, "strategies": list(request.strategies) or ["default"]}
