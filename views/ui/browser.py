"""What only code in the browser can do: copy a run's link, and count its steps, one for each run and page that a person
opens, and none for a changed choice."""

from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
# What is no choice of a request stays with another run.
_KEPT = ("run", "baseline", "tab")


def _text(name: str) -> str:
    return (_HERE / name).read_text("utf-8")


_share = st.components.v2.component(
    "mapbench_share", html=_text("share.html"), css=_text("share.css"), js=_text("share.js")
)
_steps = st.components.v2.component("mapbench_steps", html="<span></span>", js=_text("steps.js"))


def share_button(run_id: str, file: str) -> None:
    """Draw the button that copies a run's link. ``file``: the address of the run file, for those who cannot open it."""
    _share(data={"run": run_id, "file": file}, key=f"share_{run_id}", width="content")


def count_steps() -> None:
    _steps(key="steps", width="content")


def leave(name: str) -> None:
    st.query_params.pop(name, None)


def to_run(run_id: str, *beside: str) -> None:
    """Show another run, with its own choices; ``beside``: those that are put beside it."""
    if "run" in st.query_params:
        # The step that is left is that run with its choices: those that were changed since are the next one's.
        for name in [name for name in st.query_params if name not in _KEPT]:
            del st.query_params[name]
    st.query_params["run"] = run_id
    if beside:
        st.query_params["with"] = list(beside)
