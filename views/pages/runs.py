"""The Runs page: every run that is kept, to find, open, export, delete, and import."""

import zlib

import pandas as pd
import streamlit as st

from measure import client
from measure.admission import NOBODY
from measure.run.place import StoreError
from measure.store.entries import RUNNING, Entry, Query
from views.pages import opening, texts, uploads
from views.result import exports
from views.ui import guard, look, session, times
from workloads import places

_ON_A_PAGE = 50
_ROW_HEIGHT = 30
_UPLOAD = "runs_upload"
_COMPARE = "views/pages/compare.py"


def _to_first_page() -> None:
    st.session_state["runs_page"] = 1


def _query() -> Query:
    values = client.shared().store.values()
    with st.grid(4, min_column_width=170, gap="small", key="runs_filters") as grid:
        with grid.cell():
            text = st.text_input(
                texts.SEARCH, key="runs_text", placeholder=texts.SEARCH_EMPTY, icon=":material/search:",
                on_change=_to_first_page,
            )  # fmt: skip
        with grid.cell():
            workload = _choice("workload", texts.WORKLOAD, values["workload"])
        with grid.cell():
            status = _choice("status", texts.STATUS, list(texts.STATUSES), texts.STATUSES)
        with grid.cell():
            device = _choice("device", texts.DEVICE, values["device"])
    return Query(text, workload, status, device)


def _choice(name: str, label: str, options: list[str], names: dict[str, str] | None = None) -> str | None:
    return st.selectbox(
        label, options, index=None, key=f"runs_{name}", placeholder=texts.ANY, on_change=_to_first_page,
        format_func=lambda option: (names or {}).get(option, option),
    )  # fmt: skip


def _table(entries: list[Entry]) -> list[Entry]:
    """Draw the list and return the chosen entries."""
    frame = pd.DataFrame(
        {
            "open": [texts.OPEN] * len(entries),
            texts.DATE_COLUMN.format(zone=times.zone()): [times.local(entry.created) for entry in entries],
            texts.WORKLOAD_COLUMN: [entry.workload for entry in entries],
            texts.SIZE_COLUMN: [entry.size for entry in entries],
            texts.VERDICT_COLUMN: [entry.verdict or look.MISSING for entry in entries],
            texts.STATUS_COLUMN: [
                texts.STATUSES[entry.status]
                + (texts.IMPORTED_TOO if entry.imported else "")
                + (texts.PINNED_TOO if entry.pinned else "")
                for entry in entries
            ],
            texts.DEVICE_COLUMN: [entry.device for entry in entries],
            texts.MACHINE_COLUMN: [entry.machine or look.MISSING for entry in entries],
        }
    )
    # A selection is of places in the table: with other runs in it, it is another table.
    shown = zlib.crc32(" ".join(entry.id for entry in entries).encode())
    chosen = st.dataframe(
        frame, hide_index=True, key=f"runs_table_{shown}", on_select="rerun", selection_mode="multi-row",
        row_height=_ROW_HEIGHT, height="content", alt=texts.TABLE,
        column_config={
            "open": st.column_config.ButtonColumn("", key="runs_open", type="tertiary", width="small"),
            texts.VERDICT_COLUMN: st.column_config.TextColumn(width="large"),
        },
    )  # fmt: skip
    click = st.session_state.get("runs_open")
    if click is not None and click.row < len(entries):
        st.switch_page(_COMPARE, query_params={"run": entries[click.row].id})
    return [entries[row] for row in chosen.selection.rows if row < len(entries)]


# --- delete ----------------------------------------------------------------------------------------------------------


def _may_delete(entry: Entry) -> bool:
    return entry.status != RUNNING and session.may(entry.owner)


def _delete(ids: list[str]) -> None:
    try:
        gone = client.shared().delete(ids, session.visitor())
    except StoreError as error:
        st.session_state["runs_notice"] = ("error", texts.NOT_DELETED.format(reason=error), None)
        return
    said = texts.ONE_DELETED if len(gone) == 1 else texts.DELETED.format(count=len(gone))
    st.session_state["runs_notice"] = ("success", said, None)


@st.dialog(texts.ASK)
def _ask(ids: list[str]) -> None:
    st.markdown(texts.ASK_ONE if len(ids) == 1 else texts.ASK_MANY.format(count=len(ids)))
    with st.container(horizontal=True):
        if st.button(
            texts.DELETE, key="runs_delete_yes", type="primary", icon=":material/delete:", on_click=_delete, args=(ids,)
        ):
            st.rerun()
        if st.button(texts.KEEP, key="runs_delete_no"):
            st.rerun()


def _toolbar(chosen: list[Entry]) -> None:
    ids = [entry.id for entry in chosen]
    deletable = [entry.id for entry in chosen if _may_delete(entry)]
    with st.container(horizontal=True, key="runs_toolbar", vertical_alignment="center"):
        st.caption(texts.SELECTED.format(count=len(ids)) if ids else texts.SELECT, width="content")
        if ids:
            st.link_button(texts.EXPORT, exports.of_runs(ids), key="runs_export", icon=":material/download:")
        else:  # a link that is disabled is drawn too faintly to be read
            st.button(texts.EXPORT, key="runs_export_none", icon=":material/download:", disabled=True)
        only_own = texts.DELETE_OWN_HELP if places.hosted() else texts.DELETE_HELP
        if st.button(
            texts.DELETE, key="runs_delete", icon=":material/delete:", disabled=not deletable, help=only_own
        ):  # fmt: skip
            _ask(deletable)
        unpins = bool(deletable) and all(entry.pinned for entry in chosen if _may_delete(entry))
        st.button(
            texts.UNPIN if unpins else texts.PIN, key="runs_pin", icon=":material/keep:", disabled=not deletable,
            help=texts.PIN_HELP, on_click=_pin, args=(deletable, not unpins),
        )  # fmt: skip


def _pin(ids: list[str], pinned: bool) -> None:
    who = session.visitor()
    try:
        done = client.shared().store.pin(ids, pinned, None if who == NOBODY else who.owner)
    except (ValueError, StoreError) as error:
        st.session_state["runs_notice"] = ("error", texts.NOT_PINNED.format(reason=error), None)
        return
    said = (texts.PINNED if pinned else texts.UNPINNED).format(count=len(done))
    st.session_state["runs_notice"] = ("success", said, None)


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
        run_id, added = uploads.take(uploaded, session.visitor().owner)
    except (ValueError, StoreError) as error:
        st.session_state["runs_notice"] = ("error", texts.NOT_IMPORTED.format(file=uploaded.name, reason=error), None)
        return
    said = texts.IMPORTED if added else texts.IMPORTED_BEFORE
    st.session_state["runs_notice"] = ("success", said.format(file=uploaded.name), run_id)


def _notice() -> None:
    """Draw what became of the last import or deletion, until something else is done."""
    kind, text, run_id = st.session_state.pop("runs_notice", (None, "", None))
    if kind is None:
        return
    with st.container(key="runs_notice_box", gap="small"):
        (st.success if kind == "success" else st.warning)(look.plain(text))
        if run_id is not None:
            st.page_link(
                _COMPARE, label=texts.OPEN_IMPORTED, icon=":material/open_in_new:", query_params={"run": run_id}
            )  # fmt: skip


def _draw() -> None:
    _notice()
    kept = client.shared().store
    query = _query()
    count = kept.count(query)
    pages = max(1, -(-count // _ON_A_PAGE))
    page = min(int(st.session_state.get("runs_page") or 1), pages)
    entries = kept.entries(query, first=(page - 1) * _ON_A_PAGE, most=_ON_A_PAGE)
    if not entries:
        empty = texts.NO_RUNS_HERE if places.viewer() else texts.NO_RUNS
        st.info(texts.NO_MATCH if query != Query("") else empty, icon=":material/inbox:")
    else:
        first = (page - 1) * _ON_A_PAGE + 1
        st.caption(texts.SHOWN.format(first=first, last=first + len(entries) - 1, count=count))
        _toolbar(_table(entries))
        if pages > 1:
            st.session_state["runs_page"] = page  # there may be fewer pages than before
            st.pagination(pages, key="runs_page")
    st.file_uploader(
        texts.IMPORT, type=["json"], key=_upload_key(), on_change=_import,
        max_upload_size=uploads.most_bytes() // 2**20, help=texts.IMPORT_HELP,
    )  # fmt: skip


with guard.calm(texts.PAGE):
    # Whoever goes on to a run sees the choices that it was made with: other pages read their addresses anew.
    opening.anew()
    try:
        _draw()
    except StoreError as error:
        st.error(texts.STORE_FAILED.format(reason=look.plain(error)), icon=":material/database_off:")
