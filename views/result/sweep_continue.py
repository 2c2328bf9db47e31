"""Continue, the button that goes on with a sweep: what it will do within the time budget."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st
from msgspec import structs

from measure import admission
from measure.engine import continuing
from measure.run.fit import SweepForecast
from measure.run.request import RequestError
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest, of_run
from views.result import lookup, texts
from views.ui import look
from views.ui.memo import Memo

_memo = Memo(__name__)


def request(run: Run, budget_s: float) -> SweepRequest:
    """Return the request that goes on with ``run``: the same, with another time budget. Raises `RequestError`."""
    asked = of_run(run)
    return replace(asked, base=structs.replace(asked.base, budget_s=budget_s))


def ahead(run: Run, budget_s: float) -> SweepForecast:
    """Return the forecast of what ``run`` did not measure.

    Raises `RequestError` where it cannot be continued at all; that it was measured on another machine is noticed only
    when it is continued.
    """
    asked = request(run, budget_s)
    return admission.sweep_needs(asked, continuing.taken_over(run, asked, run.environment))


def sentence(needs: SweepForecast, budget_s: float) -> str:
    """Say what the button will do. Plain text."""
    budget = look.duration(budget_s)
    if not needs.points:
        return texts.CONTINUE_IN_VAIN.format(budget=budget)
    said = texts.CONTINUE_SHORT if needs.too_long else texts.CONTINUE_FITS
    return said.format(points=len(needs.points), needed=look.duration(needs.seconds), budget=budget)


def draw(run: Run, version: int, start: Callable[[SweepRequest, str], None]) -> str:
    """Draw the button and return the sentence that says what it will do. ``start`` queues a request that goes on with
    the run of an id."""
    budget_s = float(st.session_state.get("budget", run.request.budget_s))
    try:
        needs = _memo.get((run.id, version, budget_s), lambda: ahead(run, budget_s))
        text, in_vain = sentence(needs, budget_s), not needs.points
    except RequestError as error:
        text, in_vain = _refusal(error), True
    st.button(
        texts.CONTINUE, key="continue", icon=":material/resume:", type="secondary" if in_vain else "primary",
        disabled=in_vain, on_click=_continue, args=(run.id, start),
        help=texts.CONTINUE_HELP,
    )  # fmt: skip
    return text


def _continue(run_id: str, start: Callable[[SweepRequest, str], None]) -> None:
    try:
        run = lookup.find(run_id)
        # As the field is now, which may have been changed since the button was drawn.
        start(request(run, float(st.session_state.get("budget", run.request.budget_s))), run.id)
    except RequestError as error:
        st.session_state["notices"] = (_refusal(error),)


def _refusal(error: RequestError) -> str:
    return texts.NOT_CONTINUED.format(error=error)
