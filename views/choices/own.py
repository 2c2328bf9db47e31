"""A function of a person's own: the window in which it is written and checked, and its place among the workloads.

The code goes to `permission.give`, which has it executed in a process that is thrown away. Here it is only parsed.
"""

import ast
import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from measure.client import Busy
from measure.engine import deriving
from measure.judge import answer
from measure.run.request import RequestError
from measure.store.store import Snapshot
from views.ui import guard, look, permission
from workloads import functions
from workloads.functions import GROUP, Facts, Given, leaves_from_wire
from workloads.spec import Workload, leaves

# The part of a function that a name in the code plays → its field, and the hint on it.
_ROLES = {
    "function": ("Function", "Takes one element, without the batch axis."),
    "elems": (
        "Mapped over",
        "An array, tensor, tuple or dict of them, whose first axis is the batch; or a function that makes them, whose "
        "whole-number parameters with defaults are the sizes.",
    ),
    "batched": ("Rewrite for the batch", "Takes the whole batch, and is measured as one strategy more."),
    "reference": ("Reference in NumPy", "Gives the right results of the whole batch; without one, the function does."),
}
_EXAMPLE = """import numpy as np
import tensorflow as tf


def images(batch=100, side=32):
    return np.random.default_rng(0).random((batch, side, side, 3), dtype=np.float32)


def standardize(image):
    return (image - tf.reduce_mean(image)) / tf.math.reduce_std(image)
"""
COMMANDS = """streamlit run app.py
python -m measure compare my_code.py:standardize --elems images"""
# Names by which elements are usually called, the likeliest first.
_USUAL_ELEMS = ("elems", "inputs", "images", "data", "batch", "xs")
_EDITOR_PX = 340


@dataclass
class _Window:
    """A session's window. ``text`` is what its editor, the one of this ``number``, begins with; ``draft`` the function
    in it, also while it is closed, and ``takes`` what its names take, as of the last time that Python could read it.
    ``asked`` is to be checked; the last check refused ``failed``, with ``fault`` as its sentence."""

    is_open: bool = False
    edited: str = ""  # the slug of the function that was last put into it, or chosen by it
    text: str = _EXAMPLE
    number: int = 0
    draft: Given | None = None
    takes: dict[str, bool] = field(default_factory=dict)
    asked: Given | None = None
    failed: Given | None = None
    fault: str = ""
    faults: dict[tuple[Any, ...], str] = field(default_factory=dict)  # of a function at a size


def _state() -> _Window:
    window: _Window = st.session_state.setdefault("own_state", _Window())
    return window


# --- its place among the workloads -----------------------------------------------------------------------------------


def label(workload: Workload) -> str:
    """Return a workload as the list has it: by its slug, or a function of a person's own by its name and its digest's
    first signs."""
    if workload.own is None:
        return f"{workload.group} · {workload.slug}"
    return f"{GROUP} · {workload.own.function} ({workload.slug.rpartition('_')[2][:4]})"


def draw(workload: Workload, changed: Callable[[], None]) -> None:
    """Draw the button that opens the window below the list, in which ``workload`` is picked, and the window while it is
    open. ``changed`` is called when it has chosen another workload."""
    words = "Write your own function" if workload.own is None else "Edit the code"
    st.button(words, key="own_window", type="tertiary", icon=":material/code:", on_click=_open)
    if _state().is_open:
        _draw_window(changed)


def fault_at(workload: Workload, size: Mapping[str, int]) -> str | None:
    """Have a function of a person's own looked at, at sizes that are new: the picture and the forecast are of them.
    Return the sentence that says why it cannot be measured there."""
    if workload.own is None or functions.get(workload.slug, size) or not permission.may_execute():
        return None
    faults, key = _state().faults, (workload.slug, *size.values())
    if key not in faults:
        try:
            permission.give(workload.own, size)
        except Busy:  # it is looked at when Run is pressed
            return None
        except RequestError as error:
            faults[key] = str(error)
    return faults.get(key)


def _open() -> None:
    """Have the window open when the page is next drawn. It shows what it showed last, or what was picked since."""
    window = _state()
    picked = functions.get(st.session_state["workload"])
    if picked is not None and picked.given.slug != window.edited:
        window.draft, window.edited = picked.given, picked.given.slug
    if window.draft is not None:
        window.text = window.draft.code
        st.session_state.update({f"own_{role}": getattr(window.draft, role) for role in _ROLES})
    window.is_open, window.number = True, window.number + 1


# --- the window ------------------------------------------------------------------------------------------------------


def _close() -> None:
    _state().is_open = False


def _use(slug: str, changed: Callable[[], None]) -> None:
    _close()
    _state().edited = st.session_state["workload"] = slug
    changed()


@st.dialog("Your own function", width="large", on_dismiss=_close)
def _draw_window(changed: Callable[[], None]) -> None:
    window = _state()
    if not window.is_open:
        st.rerun()  # of the whole page, which closes it
    with guard.calm("the window of your own function"), st.container(key="own", gap="small"):
        if permission.may_execute():
            _editor(window, changed)
            return
        if permission.policy() == "token":
            st.markdown(f"**Your own code is locked in this browser.** To unlock it, {permission.LOCKED}.")
            return
        st.markdown(
            "**On this server no code of yours can be run**, since others can reach it. On your own machine it can: "
            "start Mapbench there and write the function in this window, or have it measured from a file."
        )
        st.code(COMMANDS, language="shell")


def _editor(window: _Window, changed: Callable[[], None]) -> None:
    st.markdown(
        "A function of **one element**, and something to map it over: an array, or a function that makes one. "
        "The check runs the code in a process that is thrown away."
    )
    code_place, roles_place, buttons_place, outcome = (st.container() for _ in range(4))
    if window.asked is not None:
        with outcome:
            _check(window, window.asked)
    with code_place:
        code = _code(window)
    with roles_place:
        given = window.draft = _roles(window, code)
    try:
        deriving.check(given)  # as one types: nothing is executed
        unreadable = ""
    except RequestError as error:
        unreadable = str(error)
    own = functions.get(given.slug)  # which this very code is once it was checked
    with buttons_place, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Check", key="own_check", type="secondary" if own else "primary", icon=":material/rule:",
            on_click=setattr, args=(window, "asked", given), disabled=bool(unreadable),
        )  # fmt: skip
        if own:
            st.button(
                f"Use {look.plain(given.function)} as the workload", key="own_use", type="primary",
                icon=":material/check:", on_click=_use, args=(given.slug, changed),
            )  # fmt: skip
    with outcome:
        if unreadable:
            st.warning(look.plain(look.sentence(unreadable)), icon=":material/edit:")
        elif own:
            st.html(_facts_html(own.facts))
        elif window.failed == given:
            st.error(look.plain(look.sentence(window.fault)), icon=":material/block:")


def _check(window: _Window, given: Given) -> None:
    """Check a function, once the run that is measured has ended: nothing that is timed is disturbed by it."""
    before = window.fault
    window.asked, window.failed, window.fault = None, None, ""
    place = st.empty()

    def waiting(snapshot: Snapshot) -> None:
        left = f", about {look.duration(snapshot.remaining_s)} more" if snapshot.remaining_s else ""
        run = look.plain(answer.heading(snapshot.run))
        place.caption(f":material/hourglass_top: Waits for {run}{left}; it goes before all queued runs.")

    with st.spinner("Checking"):
        try:
            permission.give(given, waiting=waiting)
        except RequestError as error:
            window.failed, window.fault = given, str(error)
    place.empty()
    if window.fault != before:  # the editor's marks change: it is made anew
        window.text, window.number = given.code, window.number + 1


def _code(window: _Window) -> str:
    """Draw the editor, which marks the line of a fault, and return its text."""
    # Only now: it registers a component, which a page without the window has no use for.
    from streamlit_ace import st_ace

    line = re.search(r"\bline (\d+)", window.fault)
    code = st_ace(
        value=window.text,
        language="python",
        theme="tomorrow_night" if st.context.theme.type == "dark" else "chrome",
        height=_EDITOR_PX,
        font_size=13,
        annotations=[{"row": int(line[1]) - 1, "column": 0, "type": "error", "text": window.fault}] if line else [],
        auto_update=True,
        # With other arguments a component is made anew, and forgets what was written: one with a new number has it.
        key=f"own_code_{window.number}",
    )
    return str(code)


def _roles(window: _Window, code: str) -> Given:
    """Draw the choice of which name in the code is what, and return the function. While the code is no Python, as it
    often is while one types, its names are those of before."""
    takes = window.takes = _names(code, window.takes)
    # Elements are usually called so, or come first of what is no function of something; the function is the last that
    # takes something and is not the elements.
    bare = [name for name in takes if not takes[name]]
    callables = [name for name in takes if takes[name]]
    elems = next((name for name in (*_USUAL_ELEMS, *bare, *takes) if name in takes), "")
    usual = {"elems": elems, "function": next((name for name in reversed(callables) if name != elems), "")}
    chosen = {}
    with st.grid(2, min_column_width=200, gap="small"):
        for role, (title, about) in _ROLES.items():
            among = {"function": callables, "elems": list(takes)}.get(role, ["", *callables]) or [""]
            if st.session_state.get(f"own_{role}") not in among:
                st.session_state[f"own_{role}"] = usual[role] if usual.get(role) in among else among[0]
            chosen[role] = st.selectbox(
                title, among, key=f"own_{role}", help=about, format_func=lambda name: name or "none"
            )
    return Given(code=code, **chosen)


def _names(code: str, before: dict[str, bool]) -> dict[str, bool]:
    """Return the names that code defines at its top level, in order, and whether each is a function that takes
    something; those of ``before`` where it is no Python."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of what is nested too deeply
        return before
    takes = dict[str, bool]()
    for node in body:
        value: ast.AST | None = node
        names = [node.name] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.Assign | ast.AnnAssign):
            value = node.value
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        parameters = value.args if isinstance(value, ast.FunctionDef | ast.Lambda) else None
        takes |= dict.fromkeys(names, parameters is not None and bool(parameters.posonlyargs + parameters.args))
    return takes


def _facts_html(facts: Facts) -> str:
    def shapes(wire: Any) -> str:
        parts = leaves(leaves_from_wire(wire))
        return " and ".join(f"{'×'.join(map(str, leaf.shape)) or 'scalar'} {leaf.dtype}" for leaf in parts)

    at_least = "at least " if isinstance(facts.unknown_work, list) else ""
    terms = {
        "one element": shapes(facts.element),
        "its result": shapes(facts.result),
        "sizes": ", ".join(f"{name} {value:,}" for name, value in facts.size.items()),
        "work": f"{at_least}{facts.flops:,} floating-point operations an element",
        "variables": look.size(facts.variable_bytes),
    }
    rows = "".join(f"<li>{name}: <b>{html.escape(words)}</b></li>" for name, words in terms.items())
    rows += "".join(f"<li>{look.code_html(note)}</li>" for note in facts.notes)
    return f'<ul class="own-facts" role="status" style="margin:0;padding-left:1.1rem">{rows}</ul>'
