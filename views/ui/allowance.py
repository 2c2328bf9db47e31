"""The line that says what visitors of a hosted server may have of it."""

import streamlit as st

from measure import hosting
from views.ui import look, texts
from workloads import places


def draw() -> None:
    """Draw the line; there is none at home, and where nothing is measured."""
    if places.hosted() and not places.viewer():
        with st.container(key="allowed"):
            st.caption(_line(hosting.limits()))


def _line(limits: hosting.Limits) -> str:
    return texts.ALLOWED.format(
        run=look.duration(limits.run_s),
        budget=look.duration(limits.budget_s),
        sweep=look.duration(limits.sweep_s),
        runs=_runs(limits.session_runs),
        address=_runs(limits.address_runs),
        queue=_runs(limits.queue_length),
        day=look.duration(limits.address_day_s),
        strategies=limits.most_strategies,
        cells=limits.most_cells,
        threads=limits.most_threads,
        memory=_mib(limits.memory_mib),
        upload=_mib(limits.upload_mib),
        recent=look.duration(limits.recent_s),
        store=_mib(limits.store_mib),
    )


def _runs(count: int | None) -> str:
    return texts.ONE_RUN if count == 1 else texts.RUNS.format(count=count)


def _mib(value: int | None) -> str:
    """Return a setting's size as whole as it is."""
    if value is None:
        return look.MISSING
    return f"{value / 1024:g} GiB" if value % 256 == 0 else f"{value:,} MiB"
