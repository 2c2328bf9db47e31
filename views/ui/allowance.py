"""The line that says what visitors of a hosted server may have of it."""

import streamlit as st

from measure import hosting
from views.ui import look
from workloads import places


def draw() -> None:
    """Draw the line; there is none at home, and where nothing is measured."""
    if not places.hosted() or places.viewer():
        return
    limits, time = hosting.limits(), look.duration
    with st.container(key="allowed"):
        st.caption(
            f"**What this demo allows**: {time(limits.run_s)} for a comparison, {time(limits.budget_s)} of it for "
            f"latencies, {time(limits.sweep_s)} for a sweep or claims; {_runs(limits.session_runs)} at a time, "
            f"{_runs(limits.address_runs)} of one address, {_runs(limits.queue_length)} in the queue, and "
            f"{time(limits.address_day_s)} of measuring a day; up to {limits.most_strategies} strategies, "
            f"{limits.most_cells} cells of a sweep, {limits.most_threads} threads, {_mib(limits.memory_mib)} of "
            f"memory, and files of {_mib(limits.upload_mib)}. What was measured in the last {time(limits.recent_s)} "
            f"answers an equal request. The oldest runs go when those that are kept fill {_mib(limits.store_mib)}."
        )


def _runs(count: int | None) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _mib(value: int | None) -> str:
    """A setting's size as whole as it is."""
    if value is None:
        return look.MISSING
    return f"{value / 1024:g} GiB" if value % 256 == 0 else f"{value:,} MiB"
