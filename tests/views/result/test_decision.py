"""The decision on a run: the form that writes it, who has it, and that it stays text."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.admission import Visitor
from measure.run import decision
from measure.store.store import Store
from tests import synthetic
from tests.keeping import put
from tests.pages import RUN_ID, StoredClient, buttons, calm, example, open_page, words
from views.result import decision as page
from views.ui import session


def opened(kept: Store, kind: str = "compare") -> tuple[AppTest, str]:
    """The page of a run with the form open, where it has one, and what the keys of the fields begin with."""
    key = f"decide_{RUN_ID}_{kept.look(RUN_ID).version}"
    app = open_page(kind, run=RUN_ID)
    app.session_state[key] = True
    return calm(app.run()), key


def save(app: AppTest, key: str, **fields: str) -> AppTest:
    for name, value in fields.items():
        (app.text_area if name in ("decision", "note") else app.text_input)(key=f"{key}_{name}").set_value(value)
    return calm(app.button(key=f"{key}_save").click().run())


@pytest.mark.parametrize("made", [synthetic.run(RUN_ID), synthetic.sweep(RUN_ID), replace(example(), id=RUN_ID)])
def test_what_is_written_stands_above_the_result_and_empty_fields_remove_it(stored: StoredClient, monkeypatch, made):
    monkeypatch.setattr(page, "account", lambda: "ann")
    stored.store.add(made)  # at home, one from elsewhere as well
    app, key = opened(stored.store, made.kind)
    assert app.text_input(key=f"{key}_by").value == "ann"
    app = save(app, key, title="Title", decision="We take it", note=f"one\n{synthetic.HOSTILE}")
    written = stored.store.load(RUN_ID).decision
    assert (written.title, written.decision, written.by) == ("Title", "We take it", "ann")
    assert "Title" in words(app) and f"one  \n{synthetic.HOSTILE}" in words(app) and "by ann" in words(app)
    assert not app.text_area, "the form is closed"
    app, key = opened(stored.store, made.kind)
    app = save(app, key, title="", decision="", note=" ")
    assert stored.store.load(RUN_ID) == made and "by ann" not in words(app)


def test_a_field_takes_no_more_than_a_file_and_what_cannot_be_written_is_said(stored: StoredClient):
    put(stored.store, synthetic.run(RUN_ID))
    app, key = opened(stored.store)
    save(app, key, title="t" * 300)
    assert stored.store.load(RUN_ID).decision.title == "t" * 200
    app, key = opened(stored.store)
    stored.store.delete([RUN_ID])
    assert "Nothing was saved" in words(save(app, key, title="t"))


def test_on_a_hosted_server_the_owner_alone_decides_and_a_viewer_shows_it(stored: StoredClient, monkeypatch):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    monkeypatch.setattr(session, "visitor", lambda: Visitor("ann", "ann"))
    put(stored.store, synthetic.run(RUN_ID), owner="ann")
    app, key = opened(stored.store)
    assert app.text_input(key=f"{key}_by").value == "", "whose account the server has is nobody's matter"
    monkeypatch.setattr(session, "visitor", lambda: Visitor("bob", "bob"))
    assert "Nothing was saved" in words(save(app, key, title="by a form of before"))
    assert not opened(stored.store)[0].text_area and stored.store.load(RUN_ID).decision is UNSET
    stored.store.decide(RUN_ID, decision.make("Title"))
    assert "Title" in words(opened(stored.store)[0])
    monkeypatch.delenv("MAPBENCH_HOSTED")
    monkeypatch.setenv("MAPBENCH_VIEWER", "1")
    app = opened(stored.store)[0]
    assert "Title" in words(app) and not app.text_area and "present" in buttons(app)
