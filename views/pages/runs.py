"""The Runs page: every run that is kept, to find, open, export, delete, and import."""

import zlib
from functools import partial

import pandas as pd
import streamlit as st

from measure import runner
from measure.model.place import StoreError
from measure.store import imports
from measure.store.entries import RUNNING, Entry, Query
from views.pages import opening
from views.result import archive
from views.ui import guard, look, session, times
from workloads import places

_ON_A_PAGE = 50
_STATUSES = {
    "complete": "complete",
    "budget": "budget spent",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    RUNNING: "running",
}
_ROW_HEIGHT = 30
_UPLOAD = "runs_upload"
_COMPARE = "views/pages/compare.py"


def _to_first_page() -> None:
    st.session_state["runs_page"] = 1


def _query() -> Query:
    values = runner.shared().store.values()
    with st.grid(4, min_column_width=170, gap="small", key="runs_filters") as grid:
        with grid.cell():
            text = st.text_input(
                "Search", key="runs_text", placeholder="verdict, machine, date …", icon=":material/search:",
                on_change=_to_first_page,
            )  # fmt: skip
        with grid.cell():
            workload = _choice("Workload", values["workload"])
        with grid.cell():
            status = _choice("Status", list(_STATUSES), _STATUSES)
        with grid.cell():
            device = _choice("Device", values["device"])
    return Query(text, workload, status, device)


def _choice(label: str, options: list[str], names: dict[str, str] | None = None) -> str | None:
    return st.selectbox(
        label, options, index=None, key=f"runs_{label.lower()}", placeholder="all", on_change=_to_first_page,
        format_func=lambda option: (names or {}).get(option, option),
    )  # fmt: skip


def _table(entries: list[Entry]) -> list[Entry]:
    """Draw the list and return the chosen entries."""
    frame = pd.DataFrame(
        {
            "open": [":material/open_in_new: Open"] * len(entries),
            f"date ({times.zone()})": [times.local(entry.created) for entry in entries],
            "workload": [entry.workload for entry in entries],
            "size": [entry.size for entry in entries],
            "verdict": [entry.verdict or look.MISSING for entry in entries],
            "status": [_STATUSES[entry.status] + (", imported" if entry.imported else "") for entry in entries],
            "device": [entry.device for entry in entries],
            "machine": [entry.machine or look.MISSING for entry in entries],
        }
    )
    # A selection is of places in the table: with other runs in it, it is another table.
    shown = zlib.crc32(" ".join(entry.id for entry in entries).encode())
    chosen = st.dataframe(
        frame, hide_index=True, key=f"runs_table_{shown}", on_select="rerun", selection_mode="multi-row",
        row_height=_ROW_HEIGHT, height="content", alt="Runs, the newest first",
        column_config={
            "open": st.column_config.ButtonColumn("", key="runs_open", type="tertiary", width="small"),
            "verdict": st.column_config.TextColumn(width="large"),
        },
    )  # fmt: skip
    click = st.session_state.get("runs_open")
    if click is not None and click.row < len(entries):
        st.switch_page(_COMPARE, query_params={"run": entries[click.row].id})
    return [entries[row] for row in chosen.selection.rows if row < len(entries)]


# --- delete ----------------------------------------------------------------------------------------------------------


def _may_delete(entry: Entry) -> bool:
    return entry.status != RUNNING and (not places.hosted() or entry.owner == session.owner())


def _delete(ids: list[str]) -> None:
    try:
        gone = runner.shared().delete(ids, session.owner() if places.hosted() else None)
    except StoreError as error:
        st.session_state["runs_notice"] = ("error", f"Nothing was deleted: {error}.", None)
        return
    st.session_state["runs_notice"] = ("success", f"{len(gone)} run{'s' * (len(gone) != 1)} deleted.", None)


@st.dialog("Delete runs?")
def _ask(ids: list[str]) -> None:
    count = "this run" if len(ids) == 1 else f"these {len(ids)} runs"
    st.markdown(f"Nothing brings {count} back, and links to {'it' if len(ids) == 1 else 'them'} will say so.")
    with st.container(horizontal=True):
        if st.button(
            "Delete", key="runs_delete_yes", type="primary", icon=":material/delete:", on_click=_delete, args=(ids,)
        ):
            st.rerun()
        if st.button("Keep", key="runs_delete_no"):
            st.rerun()


def _toolbar(chosen: list[Entry]) -> None:
    ids = [entry.id for entry in chosen]
    deletable = [entry.id for entry in chosen if _may_delete(entry)]
    with st.container(horizontal=True, key="runs_toolbar", vertical_alignment="center"):
        st.caption(f"{len(ids)} selected" if ids else "Select runs to export or delete them.", width="content")
        ending = "json" if len(ids) == 1 else "zip"
        st.download_button(
            "Export", partial(archive.pack, ids), file_name=f"mapbench-{ids[0] if len(ids) == 1 else 'runs'}.{ending}",
            key="runs_export", icon=":material/download:", on_click="ignore", disabled=not ids,
        )  # fmt: skip
        only_own = "Only runs of one's own session can be deleted here." if places.hosted() else "Running ones stay."
        if st.button(
            "Delete", key="runs_delete", icon=":material/delete:", disabled=not deletable, help=only_own
        ):  # fmt: skip
            _ask(deletable)


# --- import ----------------------------------------------------------------------------------------------------------


def _upload_key() -> str:
    return f"{_UPLOAD}_{st.session_state.get(_UPLOAD, 0)}"


def _import() -> None:
    """Take in what was uploaded, or say why not; the field is empty again afterwards."""
    uploaded = st.session_state[_upload_key()]
    if uploaded is None:
        return
    st.session_state[_UPLOAD] = st.session_state.get(_UPLOAD, 0) + 1
    try:
        run = imports.read(uploaded.getvalue())
        added = runner.shared().store.add(run, session.owner())
    except (ValueError, StoreError) as error:
        st.session_state["runs_notice"] = ("error", f"{uploaded.name} was not imported: {error}.", None)
        return
    outcome = "was imported" if added else "holds a run that is here already"
    st.session_state["runs_notice"] = ("success", f"{uploaded.name} {outcome}.", run.id)


def _notice() -> None:
    """Draw what became of the last import or deletion, until something else is done."""
    kind, text, run_id = st.session_state.pop("runs_notice", (None, "", None))
    if kind is None:
        return
    with st.container(key="runs_notice_box", gap="small"):
        (st.success if kind == "success" else st.warning)(look.plain(text))
        if run_id is not None:
            st.page_link(
                _COMPARE, label="Open it", icon=":material/open_in_new:", query_params={"run": run_id}
            )  # fmt: skip


def _draw() -> None:
    _notice()
    kept = runner.shared().store
    query = _query()
    count = kept.count(query)
    pages = max(1, -(-count // _ON_A_PAGE))
    page = min(int(st.session_state.get("runs_page") or 1), pages)
    entries = kept.entries(query, first=(page - 1) * _ON_A_PAGE, most=_ON_A_PAGE)
    if not entries:
        st.info(
            "No run matches. Other words or fewer filters may find more."
            if query != Query("")
            else "No run is kept yet: measure one on the Compare page, or import a run file.",
            icon=":material/inbox:",
        )
    else:
        first = (page - 1) * _ON_A_PAGE + 1
        st.caption(f"{first:,} to {first + len(entries) - 1:,} of {count:,} runs, the newest first")
        _toolbar(_table(entries))
        if pages > 1:
            st.session_state["runs_page"] = page  # there may be fewer pages than before
            st.pagination(pages, key="runs_page")
    st.file_uploader(
        "Import a run file", type=["json"], key=_upload_key(), on_change=_import,
        max_upload_size=imports.most_bytes() // 2**20,
        help="A run that was exported elsewhere. It is checked, marked as imported, and nothing in it is executed.",
    )  # fmt: skip


with guard.calm("the page"):
    # Whoever goes on to a run sees the choices that it was made with: other pages read their addresses anew.
    opening.anew()
    try:
        _draw()
    except StoreError as error:
        st.error(f"The store of runs cannot be used: {look.plain(error)}.", icon=":material/database_off:")
