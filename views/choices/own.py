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
from measure.run.request import RequestError
from views.choices import texts
from views.ui import guard, look, permission
from views.ui.memo import Memo
from workloads import functions
from workloads.functions import GROUP, Facts, Given, leaves_from_wire
from workloads.spec import Leaf, Workload, leaves

# The entry of the list of workloads that opens the window; no workload is called so.
ENTRY = "your own function"
_NO_PART = ""
_ROLES = ("function", "elems", "batched", "reference")
# Names by which elements are usually called, the likeliest first.
_USUAL_ELEMS = ("elems", "inputs", "images", "data", "batch", "xs")
_EDITOR_PX = 340
_OPEN = "own_open"  # whether the window is open
_DRAFT = "own_draft"  # the `Given` in it, also while it is closed
_USED = "own_used"  # the slug of the function that was last put into it or chosen by it
_START, _EDITOR = "own_start", "own_editor"  # the text that the editor begins with, and its number
_ASKED, _CHECK = "own_asked", "own_last_check"  # a `Given` that is to be checked, and the last `_Check`
_PICKED = "workload_picked"
_faults = Memo(__name__)


@dataclass(frozen=True)
class _Check:
    """A check's function, and its slug or, where it cannot be measured, a sentence."""

    given: Given
    slug: str | None
    fault: str


# --- its place among the workloads -----------------------------------------------------------------------------------


def label(workload: Workload | None) -> str:
    """A workload in the list: by its slug, or a function of a person's own by its name and its digest's first signs.
    None is the entry that opens the window."""
    if workload is None:
        return texts.OWN_ENTRY
    if workload.own is None:
        return f"{workload.group} · {workload.slug}"
    return f"{GROUP} · {workload.own.function} ({workload.slug.rpartition('_')[2][:4]})"


def pick(changed: Callable[[], None]) -> None:
    """Take what was picked in the list of workloads: another one, or the entry that opens the window."""
    if st.session_state["workload"] == ENTRY:
        st.session_state["workload"] = st.session_state[_PICKED]
        open_window()
    else:
        changed()


def draw(workload: Workload, changed: Callable[[], None]) -> None:
    """Draw the button that opens the window below the list, in which ``workload`` is picked, and the window while it is
    open."""
    st.session_state[_PICKED] = workload.slug
    words = texts.OWN_OPEN if workload.own is None else texts.OWN_EDIT
    st.button(words, key="own_window", type="tertiary", icon=":material/code:", on_click=open_window)
    if st.session_state.get(_OPEN):
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
    st.session_state[_OPEN] = True
    picked = functions.get(str(st.session_state.get("workload")))
    draft: Given | None = st.session_state.get(_DRAFT)
    if picked is not None and picked.given.slug != st.session_state.get(_USED):
        draft = picked.given
        st.session_state[_USED] = draft.slug
    st.session_state[_START] = texts.OWN_EXAMPLE if draft is None else draft.code
    st.session_state[_EDITOR] = st.session_state.get(_EDITOR, 0) + 1
    for role in _ROLES if draft is not None else ():
        st.session_state[f"own_{role}"] = getattr(draft, role)


# --- the window ------------------------------------------------------------------------------------------------------


def _close() -> None:
    st.session_state[_OPEN] = False


def _use(slug: str, changed: Callable[[], None]) -> None:
    _close()
    st.session_state[_USED] = st.session_state["workload"] = slug
    changed()


def _ask(given: Given) -> None:
    st.session_state[_ASKED] = given


@st.dialog(texts.OWN_TITLE, width="large", on_dismiss=_close)
def _window(changed: Callable[[], None]) -> None:
    if not st.session_state.get(_OPEN):
        st.rerun()  # of the whole page, which closes it
    with guard.calm(texts.OWN_WINDOW), st.container(key="own", gap="small"):
        if permission.may_execute():
            _editor(changed)
        else:
            st.markdown(texts.OWN_NOT_HERE)
            st.code(texts.OWN_COMMANDS, language="shell")


def _editor(changed: Callable[[], None]) -> None:
    st.markdown(texts.OWN_LEAD)
    code_place, roles_place, buttons_place, outcome = (st.container() for _ in range(4))
    with outcome:
        check = _check()
    with code_place:
        code = _code(check)
    with roles_place:
        given = st.session_state[_DRAFT] = _roles(code)
    is_of_this = check is not None and check.given == given
    with buttons_place, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        usable = check.slug if check is not None and is_of_this else None
        st.button(
            texts.OWN_CHECK, key="own_check", type="secondary" if usable else "primary", icon=":material/rule:",
            on_click=_ask, args=(given,), disabled=not (given.function and given.elems),
        )  # fmt: skip
        if usable:
            st.button(
                texts.OWN_USE.format(function=look.plain(given.function)), key="own_use", type="primary",
                icon=":material/check:", on_click=_use, args=(usable, changed),
            )  # fmt: skip
    with outcome:
        if check is not None and not is_of_this:
            st.caption(texts.OWN_CHANGED)
        elif check is not None and check.slug is None:
            st.error(look.plain(look.sentence(check.fault)), icon=":material/block:")
        elif check is not None and (own := functions.get(str(check.slug))) is not None:
            st.html(facts_html(own.facts))


def _check() -> _Check | None:
    """Do the check that was asked for; the last one."""
    given: Given | None = st.session_state.pop(_ASKED, None)
    if given is not None:
        with st.spinner(texts.OWN_CHECKING):
            try:
                check = _Check(given, permission.give(given), "")
            except RequestError as error:
                check = _Check(given, None, str(error))
        before: _Check | None = st.session_state.get(_CHECK)
        if check.fault != (before.fault if before is not None else ""):  # the editor's marks change: it is made anew
            st.session_state[_START] = given.code
            st.session_state[_EDITOR] += 1
        st.session_state[_CHECK] = check
    last: _Check | None = st.session_state.get(_CHECK)
    return last


def _code(check: _Check | None) -> str:
    """Draw the editor, which marks the line of a fault, and return its text."""
    # Only now: it registers a component, which a page without the window has no use for.
    from streamlit_ace import st_ace

    fault = check.fault if check is not None else ""
    line = re.search(r"\bline (\d+)", fault)
    marks = [{"row": int(line[1]) - 1, "column": 0, "type": "error", "text": fault}] if line else []
    code = st_ace(
        value=st.session_state[_START],
        language="python",
        theme="tomorrow_night" if st.context.theme.type == "dark" else "chrome",
        height=_EDITOR_PX,
        font_size=13,
        annotations=marks,
        auto_update=True,
        # With other arguments a component is made anew, and forgets what was written: one with a new number knows it.
        key=f"own_code_{st.session_state[_EDITOR]}",
    )
    return str(code)


def _roles(code: str) -> Given:
    """Draw the choice of which name in the code is what, and return the function."""
    names, takes = defined(code)
    callables = [name for name in names if takes.get(name)]
    usual = usual_roles(names, takes)
    offered = {
        "function": callables,
        "elems": names,
        "batched": [_NO_PART, *callables],
        "reference": [_NO_PART, *callables],
    }
    chosen = {}
    with st.grid(2, min_column_width=200, gap="small"):
        for role in _ROLES:
            key, among = f"own_{role}", offered[role] or [_NO_PART]
            if st.session_state.get(key) not in among:
                st.session_state[key] = usual[role] if usual.get(role) in among else among[0]
            title, help_ = texts.OWN_ROLES[role]
            chosen[role] = st.selectbox(
                title, among, key=key, help=help_, format_func=lambda name: name or texts.NO_VALUE
            )
    return Given(code=code, **chosen)


# --- pure ------------------------------------------------------------------------------------------------------------


def defined(code: str) -> tuple[list[str], Mapping[str, list[ast.arg]]]:
    """Return the names that code defines at its top level, in order, and the parameters that a call of each must or may
    have: none for what is no function. Code that is no Python defines nothing."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of what is nested too deeply
        return [], {}
    names: dict[str, None] = {}
    takes: dict[str, list[ast.arg]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = None
            takes[node.name] = [*node.args.posonlyargs, *node.args.args]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            for name in bound:
                names[name] = None
                if isinstance(node.value, ast.Lambda):
                    takes[name] = [*node.value.args.posonlyargs, *node.value.args.args]
    return list(names), takes


def usual_roles(names: list[str], takes: Mapping[str, list[ast.arg]]) -> dict[str, str]:
    """Return which names are most likely the elements and the function: elements are called so, or come first of what
    is no function of something; the function is the last that takes something and is not the elements."""
    elems = next((name for name in _USUAL_ELEMS if name in names), "")
    elems = elems or next((name for name in names if not takes.get(name)), names[0] if names else "")
    mapped = [name for name in names if takes.get(name) and name != elems]
    return {"elems": elems, "function": mapped[-1] if mapped else ""}


def facts_html(facts: Facts) -> str:
    """Return what was derived of a function, as a list of terms, and the sentences on it."""
    work = texts.FACT_FLOPS_LEAST if isinstance(facts.unknown_work, list) else texts.FACT_FLOPS
    parts = [
        (texts.FACT_ELEMENT, _shapes(facts.element)),
        (texts.FACT_RESULT, _shapes(facts.result)),
        (texts.FACT_SIZES, ", ".join(f"{name} {value:,}" for name, value in facts.size.items())),
        (texts.FACT_WORK, work.format(flops=facts.flops)),
        (texts.FACT_HOLDS, look.size(facts.variable_bytes)),
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
        return f"{'×'.join(map(str, leaf.shape)) or texts.FACT_SCALAR} {leaf.dtype}"

    return " and ".join(map(one, leaves(leaves_from_wire(wire))))
