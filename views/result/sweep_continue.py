"""Continue, the button that goes on with a sweep: what it will do within the time budget, and what it would need."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st

from measure.beginning import sweep_bound_s
from measure.machine import environment
from measure.model.request import MOST_BUDGET_S, RequestError
from measure.model.run import Run
from measure.sweep import continuing, needs
from measure.sweep.needs import SweepForecast
from measure.sweep.omissions import OVER_BUDGET
from measure.sweep.request import SweepRequest, of_run
from views.result import lookup, texts
from views.ui import look
from views.ui.memo import Memo

_memo = Memo(__name__)
# Budgets are named in steps of so many seconds, as the page's field has them.
_STEP_S = 10


@dataclass(frozen=True)
class Outlook:
    """The forecast of continuing. ``missing``: cells (a strategy at a point) that nobody measured yet;
    ``short``: those of them that the budget leaves out again; ``enough_s``: a budget that leaves out none, None where
    none does."""

    forecast: SweepForecast
    missing: int
    short: int
    enough_s: float | None

    @property
    def in_vain(self) -> bool:
        """True if all that is missing would be left out again."""
        return 0 < self.missing == self.short


def request(run: Run, budget_s: float) -> SweepRequest:
    """Return the request that goes on with ``run``: the same, with another time budget. Raises `RequestError`."""
    asked = of_run(run)
    return replace(asked, base=replace(asked.base, budget_s=budget_s))


def outlook(run: Run, budget_s: float, available_bytes: int) -> Outlook:
    """Return the outlook, by the forecast of what ``run`` did not measure.

    Raises `RequestError` where it cannot be continued at all; that it was measured on another machine is noticed only
    when it is continued.
    """
    asked = request(run, budget_s)
    taken = needs.known_before(continuing.taken_over(run, asked, run.environment))
    plan = needs.plan(asked, available_bytes, taken, sweep_bound_s(budget_s))
    most = needs.plan(request(run, MOST_BUDGET_S), available_bytes, taken, sweep_bound_s(MOST_BUDGET_S))
    # What was inferred is not missing.
    inferred = {needs.key(point.at) for point in run.points if point.status == "skipped" and point.ranking}
    missing = short = 0
    for at in asked.points():
        where = needs.key(at)
        if where not in plan.skipped and where not in inferred:
            left_out = plan.left_out.get(where, {})
            over = {slug for slug, error in left_out.items() if error.type == OVER_BUDGET}
            missing += len(set(asked.comparison(at).strategies) - set(taken.get(where, ())) - (left_out.keys() - over))
            short += len(over)
    over_most = any(error.type == OVER_BUDGET for errors in most.left_out.values() for error in errors.values())
    enough_s = None if over_most else _STEP_S * math.ceil(most.forecast.seconds / _STEP_S)
    return Outlook(plan.forecast, missing, short, enough_s)


def sentence(ahead: Outlook, budget_s: float) -> str:
    """Say what the button will do. Plain text."""
    budget, needed = look.duration(budget_s), look.duration(ahead.forecast.seconds)
    if not ahead.short:
        return texts.CONTINUE_FITS.format(needed=needed, budget=budget)
    if ahead.in_vain:
        what = texts.CONTINUE_IN_VAIN.format(budget=budget)
    else:
        what = texts.CONTINUE_SHORT.format(needed=needed, budget=budget, short=ahead.short, missing=ahead.missing)
    if ahead.enough_s is None:
        return texts.NO_BUDGET_ENOUGH.format(what=what)
    return texts.BUDGET_ENOUGH.format(what=what, enough=look.duration(ahead.enough_s))


def draw(run: Run, version: int, start: Callable[[SweepRequest, str], None]) -> str:
    """Draw the button and return the sentence that says what it will do. ``start`` queues a request that goes on with
    the run of an id."""
    budget_s = float(st.session_state.get("budget", run.request.budget_s))
    available_bytes = environment.available_memory()
    try:
        ahead = _memo.get((run.id, version, budget_s), lambda: outlook(run, budget_s, available_bytes))
        text, in_vain = sentence(ahead, budget_s), ahead.in_vain
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
