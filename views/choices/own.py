"""A function of a person's own: the window in which it is written and checked, and its place among the workloads.

The code goes to `permission.give`, which has it executed in a process that is thrown away. Here it is only parsed.
"""

import ast
import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from measure.client import Busy
from measure.engine import deriving
from measure.judge import answer
from measure.run.request import RequestError
from measure.store.store import Snapshot
from views.ui import guard, look, permission
from views.ui.memo import Memo
from workloads import functions
from workloads.functions import GROUP, Facts, Given, leaves_from_wire
from workloads.spec import Leaf, Workload, leaves

# The entry of the list of workloads that opens the window; no workload is called so.
ENTRY = "your own function"
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
_faults = Memo(__name__)


@dataclass
class _Window:
    """A session's window. ``draft`` is the function in it, also while it is closed, and ``parsed`` its code as it was
    when Python could last read it; ``used`` the slug of the function that was last put into it or chosen by it;
    ``start`` the text that the editor of this ``number`` begins with; ``asked`` is to be checked, and ``checked`` was,
    with its ``slug`` or, where it cannot be measured, a sentence in ``fault``."""

    is_open: bool = False
    picked: str = ""  # the workload below which its button is
    draft: Given | None = None
    parsed: str = ""
    used: str = ""
    start: str = ""
    number: int = 0
    asked: Given | None = None
    checked: Given | None = None
    slug: str | None = None
    fault: str = ""


def _state() -> _Window:
    window: _Window = st.session_state.setdefault("own_state", _Window())
    return window


# --- its place among the workloads -----------------------------------------------------------------------------------


def label(workload: Workload | None) -> str:
    """A workload in the list: by its slug, or a function of a person's own by its name and its digest's first signs.
    None is the entry that opens the window."""
    if workload is None:
        return "Your own · a function that you write …"
    if workload.own is None:
        return f"{workload.group} · {workload.slug}"
    return f"{GROUP} · {workload.own.function} ({workload.slug.rpartition('_')[2][:4]})"


def pick(changed: Callable[[], None]) -> None:
    """Take what was picked in the list of workloads: another one, or the entry that opens the window."""
    if st.session_state["workload"] == ENTRY:
        st.session_state["workload"] = _state().picked
        open_window()
    else:
        changed()


def draw(workload: Workload, changed: Callable[[], None]) -> None:
    """Draw the button that opens the window below the list, in which ``workload`` is picked, and the window while it is
    open."""
    window = _state()
    window.picked = workload.slug
    words = "Write your own function" if workload.own is None else "Edit the code"
    st.button(words, key="own_window", type="tertiary", icon=":material/code:", on_click=open_window)
    if window.is_open:
        _window(changed)


def fault_at(workload: Workload, size: Mapping[str, int]) -> str | None:
    """Have a function of a person's own looked at, at sizes that are new: the picture and the forecast are of them. The
    sentence that says why it cannot be measured there."""
    if workload.own is None or functions.get(workload.slug, size) or not permission.may_execute():
        return None
    given = workload.own

    def look_at() -> str | None:
        try:
            permission.give(given, size)
        except Busy:
            raise  # no answer to keep
        except RequestError as error:
            return str(error)
        return None

    try:
        return _faults.get((workload.slug, *sorted(size.items())), look_at)
    except Busy:  # it is looked at when Run is pressed
        return None


def open_window() -> None:
    """Have the window open when the page is next drawn. It shows what it showed last, or what was picked since."""
    window = _state()
    window.is_open = True
    picked = functions.get(str(st.session_state.get("workload")))
    if picked is not None and picked.given.slug != window.used:
        window.draft, window.used = picked.given, picked.given.slug
    window.start = _EXAMPLE if window.draft is None else window.draft.code
    window.number += 1
    if window.draft is not None:
        for role in _ROLES:
            st.session_state[f"own_{role}"] = getattr(window.draft, role)


# --- the window ------------------------------------------------------------------------------------------------------


def _close() -> None:
    _state().is_open = False


def _use(slug: str, changed: Callable[[], None]) -> None:
    _close()
    _state().used = st.session_state["workload"] = slug
    changed()


@st.dialog("Your own function", width="large", on_dismiss=_close)
def _window(changed: Callable[[], None]) -> None:
    window = _state()
    if not window.is_open:
        st.rerun()  # of the whole page, which closes it
    with guard.calm("the window of your own function"), st.container(key="own", gap="small"):
        if permission.may_execute():
            _editor(window, changed)
        else:
            st.markdown(
                "**On this server no code of yours can be run**: others can reach it, or it was not opened as "
                "`localhost` or `127.0.0.1`. On your own machine it can: start Mapbench there and write the function "
                "in this window, or have it measured from a file."
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
    is_of_this = window.checked == given
    usable = window.slug if is_of_this else None
    with buttons_place, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Check", key="own_check", type="secondary" if usable else "primary", icon=":material/rule:",
            on_click=setattr, args=(window, "asked", given), disabled=bool(unreadable),
        )  # fmt: skip
        if usable:
            st.button(
                f"Use {look.plain(given.function)} as the workload", key="own_use", type="primary",
                icon=":material/check:", on_click=_use, args=(usable, changed),
            )  # fmt: skip
    with outcome:
        if unreadable:
            st.warning(look.plain(look.sentence(unreadable)), icon=":material/edit:")
        elif is_of_this and window.fault:
            st.error(look.plain(look.sentence(window.fault)), icon=":material/block:")
        elif window.checked is not None and not is_of_this:
            st.caption("Changed since the last check.")
        elif usable and (own := functions.get(usable)) is not None:
            st.html(_facts_html(own.facts))


def _check(window: _Window, given: Given) -> None:
    """Check a function, once the run that is measured has ended: nothing that is timed is disturbed by it."""
    before, window.asked, window.checked = window.fault, None, given
    window.slug, window.fault = None, ""
    place = st.empty()

    def waiting(snapshot: Snapshot) -> None:
        left = f", about {look.duration(snapshot.remaining_s)} more" if snapshot.remaining_s else ""
        run = look.plain(answer.heading(snapshot.run))
        place.caption(f":material/hourglass_top: Waits for {run}{left}; it goes before all queued runs.")

    with st.spinner("Checking"):
        try:
            window.slug = permission.give(given, waiting=waiting)
        except RequestError as error:
            window.fault = str(error)
    place.empty()
    if window.fault != before:  # the editor's marks change: it is made anew
        window.start, window.number = given.code, window.number + 1


def _code(window: _Window) -> str:
    """Draw the editor, which marks the line of a fault, and return its text."""
    # Only now: it registers a component, which a page without the window has no use for.
    from streamlit_ace import st_ace

    line = re.search(r"\bline (\d+)", window.fault)
    marks = [{"row": int(line[1]) - 1, "column": 0, "type": "error", "text": window.fault}] if line else []
    code = st_ace(
        value=window.start,
        language="python",
        theme="tomorrow_night" if st.context.theme.type == "dark" else "chrome",
        height=_EDITOR_PX,
        font_size=13,
        annotations=marks,
        auto_update=True,
        # With other arguments a component is made anew, and forgets what was written: one with a new number has it.
        key=f"own_code_{window.number}",
    )
    return str(code)


def _roles(window: _Window, code: str) -> Given:
    """Draw the choice of which name in the code is what, and return the function. While the code is no Python, as it
    often is while one types, its names are those of before."""
    if (takes := _defined(code)) is not None:
        window.parsed = code
    else:
        takes = _defined(window.parsed) or {}
    # Elements are usually called so, or come first of what is no function of something; the function is the last that
    # takes something and is not the elements.
    bare = [name for name in takes if not takes[name]]
    elems = next((name for name in (*_USUAL_ELEMS, *bare, *takes) if name in takes), "")
    callables = [name for name in takes if takes[name]]
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


# --- pure ------------------------------------------------------------------------------------------------------------


def _defined(code: str) -> dict[str, list[ast.arg]] | None:
    """Return the names that code defines at its top level, in order, with the parameters that a call of each must or
    may have: none for what is no function. None for code that is no Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of what is nested too deeply
        return None
    takes: dict[str, list[ast.arg]] = {}
    for node in tree.body:
        value: ast.AST | None = node
        if isinstance(node, ast.FunctionDef):
            bound = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets, value = node.targets if isinstance(node, ast.Assign) else [node.target], node.value
            bound = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        else:
            continue
        parameters = value.args if isinstance(value, ast.FunctionDef | ast.Lambda) else None
        takes |= dict.fromkeys(bound, [*parameters.posonlyargs, *parameters.args] if parameters else [])
    return takes


def _facts_html(facts: Facts) -> str:
    """Return what was derived of a function, as a list of terms, and the sentences on it."""
    at_least = "at least " if isinstance(facts.unknown_work, list) else ""
    parts = [
        ("one element", _shapes(facts.element)),
        ("its result", _shapes(facts.result)),
        ("sizes", ", ".join(f"{name} {value:,}" for name, value in facts.size.items())),
        ("work", f"{at_least}{facts.flops:,} floating-point operations an element"),
        ("variables", look.size(facts.variable_bytes)),
    ]
    terms = "".join(
        f'<dt style="opacity:.75">{name}</dt><dd style="margin:0">{html.escape(words)}</dd>' for name, words in parts
    )
    notes = "".join(f"<li>{look.code_html(note)}</li>" for note in facts.notes)
    return (
        '<div class="own-facts" role="status"><dl style="display:grid;grid-template-columns:auto 1fr;gap:.1rem .9rem;'
        f'margin:0 0 .5rem;padding:0">{terms}</dl><ul style="margin:0;padding-left:1.1rem">{notes}</ul></div>'
    )


def _shapes(wire: Any) -> str:
    """The shapes and dtypes of a nest that `leaves_to_wire` wrote: 8×8×3 float32 and scalar int64."""

    def one(leaf: Leaf) -> str:
        return f"{'×'.join(map(str, leaf.shape)) or 'scalar'} {leaf.dtype}"

    return " and ".join(map(one, leaves(leaves_from_wire(wire))))
