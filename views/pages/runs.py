"""The Runs page: every run that is kept, to find, open, export, pin, delete, and import."""

import zlib

import pandas as pd
import streamlit as st

from measure import client
from measure.admission import NOBODY
from measure.run.place import StoreError
from measure.store.entries import MOST_WORDS, RUNNING, Entry, Query
from views.pages import opening, server
from views.result import exports
from views.ui import guard, look, session
from workloads import places

_ON_A_PAGE = 50
# Status → its words.
_STATUSES = {one: one for one in ("complete", "budget", "cancelled", "interrupted", RUNNING)} | {
    "budget": "budget spent"
}
# Of the session: the page of the list, and how many files were imported.
_PAGE, _UPLOADS = "runs_page", "runs_upload"


def _draw() -> None:
    store, query = client.shared().store, _query()
    count = store.count(query)
    pages = max(1, -(-count // _ON_A_PAGE))
    page = min(int(st.session_state.get(_PAGE) or 1), pages)
    first = (page - 1) * _ON_A_PAGE
    entries = store.entries(query, first, _ON_A_PAGE)
    if len(query.words) > MOST_WORDS:
        words = f"A search has at most {MOST_WORDS} words, and this one has {len(query.words):,}"
        st.warning(f"{words}: the first ones are looked for.", icon=":material/search:")
    if entries:
        st.caption(f"{first + 1:,} to {first + len(entries):,} of {count:,} runs, the newest first")
        _toolbar(_table(entries))
        if pages > 1:
            st.session_state[_PAGE] = page  # there may be fewer pages than before
            st.pagination(pages, key=_PAGE)
    elif query != Query(""):
        st.info("No run matches. Other words or fewer filters may find more.", icon=":material/inbox:")
    else:
        measure = "" if places.viewer() else "measure one on the Compare page, or "
        st.info(f"No run is kept yet: {measure}import a run file.", icon=":material/inbox:")
    st.file_uploader(
        "Import a run file or a report", type=["json", "html"], key=_upload_key(), on_change=_import,
        max_upload_size=server.most_bytes() // 2**20,
        help="A run that was exported elsewhere. It is checked, marked as imported, and nothing in it is executed.",
    )  # fmt: skip


def _query() -> Query:
    def first_page() -> None:
        st.session_state[_PAGE] = 1

    options = {**client.shared().store.values(), "status": list(_STATUSES)}
    with st.grid(4, min_column_width=170, gap="small", key="runs_filters") as grid:
        with grid.cell():
            text = st.text_input(
                "Search", key="runs_text", placeholder="verdict, machine, date …", icon=":material/search:",
                on_change=first_page,
            )  # fmt: skip
            text = text if isinstance(text, str) else ""  # a browser may send another type
        chosen = {}
        for name in ("workload", "status", "device"):
            with grid.cell():
                chosen[name] = st.selectbox(
                    name.title(), options[name], index=None, key=f"runs_{name}", placeholder="all",
                    on_change=first_page, format_func=lambda option: _STATUSES.get(option, option),
                )  # fmt: skip
    return Query(text, **chosen)


def _table(entries: list[Entry]) -> list[Entry]:
    """Draw the list and return the chosen entries. The name and the verdict come first: a phone shows no more."""
    rows = [
        {
            "open": ":material/open_in_new:",
            "workload": entry.workload,
            "verdict": entry.verdict or look.MISSING,
            "case": " · ".join(filter(None, (entry.size, entry.device))),
            "whose": _whose(entry),
            "status": _STATUSES[entry.status] + (", pinned" if entry.pinned else ""),
            f"date ({session.zone()})": session.local(entry.created),
            "machine": entry.machine or look.MISSING,
        }
        for entry in entries
    ]
    # A selection is of places in the table: with other runs in it, it is another table.
    shown = zlib.crc32(" ".join(entry.id for entry in entries).encode())
    chosen = st.dataframe(
        pd.DataFrame(rows), hide_index=True, key=f"runs_table_{shown}", on_select="rerun", selection_mode="multi-row",
        row_height=30, height="content", alt="Runs, the newest first",
        column_config={
            "open": st.column_config.ButtonColumn("", key="runs_open", type="tertiary", width=40, help="Open the run"),
            "workload": st.column_config.TextColumn(width=130),
            "verdict": st.column_config.TextColumn(width="large"),
        },
    )  # fmt: skip
    click = st.session_state.get("runs_open")
    if click is not None and click.row < len(entries):
        st.switch_page("views/pages/compare.py", query_params={"run": entries[click.row].id})
    return [entries[row] for row in chosen.selection.rows if row < len(entries)]


def _whose(entry: Entry) -> str:
    if not places.hosted():
        return "imported" if entry.imported else "yours"
    return ("yours" if session.may(entry.owner) else "another visitor's") + (", imported" if entry.imported else "")


def _toolbar(chosen: list[Entry]) -> None:
    ids = [entry.id for entry in chosen]
    changeable = [entry for entry in chosen if entry.status != RUNNING and session.may(entry.owner)]
    own = [entry.id for entry in changeable]
    with st.container(horizontal=True, key="runs_toolbar", vertical_alignment="center"):
        hint = "Select runs to export, pin or delete them, or two comparisons to put side by side."
        st.caption(f"{len(ids)} selected" if ids else hint, width="content")
        ways = (("Export", "zip", ":material/download:"), ("Report", exports.REPORT, ":material/article:"))
        for label, ending, icon in ways[: 1 if places.viewer() else 2]:
            key = f"runs_{label.lower()}"
            if ids:
                st.link_button(label, exports.of_runs(ids, ending), key=key, icon=icon)
            else:  # a link that is disabled is drawn too faintly to be read
                st.button(label, key=f"{key}_none", icon=icon, disabled=True)
        two = len(chosen) == 2 and all(entry.kind in ("compare", "") and entry.status != RUNNING for entry in chosen)
        if two and st.button("Compare", key="runs_compare", icon=":material/compare:"):
            first, second = sorted(chosen, key=lambda entry: entry.created)
            st.switch_page("views/pages/compare.py", query_params={"run": first.id, "with": second.id})
        # Another number of runs is another popover, and so one that is closed.
        with st.popover("Delete", icon=":material/delete:", disabled=not own, key=f"runs_delete_{len(own)}"):
            st.markdown("What is deleted is gone for good, as its links will say.")
            runs = "1 run" if len(own) == 1 else f"{len(own)} runs"
            st.button(f"Delete {runs}", key="runs_delete_yes", type="primary", disabled=not own, on_click=_delete,
                      args=(own,))  # fmt: skip
        unpins = bool(own) and all(entry.pinned for entry in changeable)
        st.button(
            "Unpin" if unpins else "Pin", key="runs_pin", icon=":material/keep:", disabled=not own,
            help="A pinned run stays when the oldest ones are removed to make room.", on_click=_pin,
            args=(own, not unpins),
        )  # fmt: skip
        if left := len(ids) - len(own):
            reason = "running, or another visitor's" if places.hosted() else "running"
            st.caption(f"{left} cannot be pinned or deleted: {reason}.", width="content")


# --- what buttons do: what became of it stands at the top of the page until something else is done --------------------


def _delete(ids: list[str]) -> None:
    try:
        count = len(client.shared().delete(ids, session.visitor()))
    except StoreError as error:
        st.warning(look.plain(f"Nothing was deleted: {error}."))
    else:
        st.success(f"{count} run{'' if count == 1 else 's'} deleted.")


def _pin(ids: list[str], pinned: bool) -> None:
    who = session.visitor()
    try:
        count = len(client.shared().store.pin(ids, pinned, None if who == NOBODY else who.owner))
    except (ValueError, StoreError) as error:
        st.warning(look.plain(f"Nothing was pinned: {error}."))
    else:
        st.success(f"{count} {'pinned' if pinned else 'no longer pinned'}.")


def _upload_key() -> str:
    return f"{_UPLOADS}_{st.session_state.get(_UPLOADS, 0)}"


def _import() -> None:
    """Take in what was uploaded, or say why not; the field is empty again afterwards."""
    uploaded = st.session_state[_upload_key()]
    if uploaded is None:
        return
    st.session_state[_UPLOADS] = st.session_state.get(_UPLOADS, 0) + 1
    try:
        added = server.take(uploaded, session.visitor().owner)
    except (ValueError, StoreError) as error:
        st.warning(look.plain(f"{uploaded.name} was not imported: {error}."))
        return
    count, new = len(added), sum(added.values())
    held = "a run that is here already" if count == 1 else f"{count} runs, {new} of them new, the others here already"
    sentence = f"{uploaded.name} {'was imported' if new == count else f'holds {held}: what is here is kept'}."
    links = " · ".join(f"[Open {'it' if count == 1 else run_id[:6]}](./?run={run_id})" for run_id in added)
    st.success(f"{look.plain(sentence)} {links}")


with guard.calm("the page"):
    # Whoever goes on to a run sees the choices that it was made with: other pages read their addresses anew.
    opening.anew()
    try:
        _draw()
    except StoreError as error:
        st.error(f"The store of runs cannot be used: {look.plain(error)}.", icon=":material/database_off:")
