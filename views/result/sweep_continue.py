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
from views.result import lookup
from views.ui import look
from views.ui.memo import Memo

_memo = Memo(__name__)


def ahead(run: Run, budget_s: float) -> tuple[SweepRequest, SweepForecast]:
    """Return the request that goes on with ``run``, the same with another time budget, and the forecast of what is
    still to be measured.

    Raises `RequestError` where it cannot be continued at all; that it was measured on another machine is noticed only
    when it is continued.
    """
    asked = of_run(run)
    asked = replace(asked, base=structs.replace(asked.base, budget_s=budget_s))
    return asked, admission.sweep_needs(asked, continuing.taken_over(run, asked, run.environment))


def draw(run: Run, version: int, start: Callable[[SweepRequest, str], None]) -> str:
    """Draw the button and return the sentence that says what it will do, plain text. ``start`` queues a request that
    goes on with the run of an id."""
    budget_s, in_vain = _budget_s(run), True
    budget = f"a time budget of {look.duration(budget_s)}"
    try:
        _, needs = _memo.get((run.id, version, budget_s), lambda: ahead(run, budget_s))
    except RequestError as error:
        words = f"This cannot be continued here: {error}."
    else:
        in_vain = not needs.points
        words = f"Continue measures {len(needs.points)} more points in about {look.duration(needs.seconds)}."
        if in_vain:
            words = look.sentence(f"{budget} is too short for what is missing: set a longer one under Advanced")
        elif needs.too_long:
            words += f" For all of it {budget} is short: set a longer one under Advanced."
    st.button(
        "Continue", key="continue", icon=":material/resume:", type="secondary" if in_vain else "primary",
        disabled=in_vain, on_click=_continue, args=(run.id, start),
        help="Measures the points that are not complete; those that are stay as they are.",
    )  # fmt: skip
    return words


def _budget_s(run: Run) -> float:
    return float(st.session_state.get("budget", run.request.budget_s))


def _continue(run_id: str, start: Callable[[SweepRequest, str], None]) -> None:
    try:
        run = lookup.find(run_id)
        # As the field is now, which may have been changed since the button was drawn.
        start(ahead(run, _budget_s(run))[0], run.id)
    except RequestError as error:
        st.session_state["notices"] = (f"This cannot be continued here: {error}.",)
