"""A page lets go of the run that it has shown: what a session keeps is small, whatever it looked at."""

import gc
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.model.kept import Kept
from measure.model.run import Run
from measure.store import store
from tests import synthetic
from tests.engine import ROOT
from tests.measure.store.test_imports import small_claims
from tests.pages import StoredRunner, calm
from views.ui import memo

ID = "5" * 24


@pytest.mark.parametrize(
    ("page", "make"),
    [
        ("compare", synthetic.run),
        ("sweep", synthetic.sweep),
        ("sweep", synthetic.winners),
        ("claims", lambda _: small_claims()),
    ],
)
def test_a_session_holds_no_run(
    page: str, make: Callable[[str], Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where neither the store nor the pages have room to keep one."""
    monkeypatch.setattr(store, "_DECODED_BYTES", 0)
    monkeypatch.setattr(memo, "_kept", Kept(0))
    fake = StoredRunner(tmp_path)
    monkeypatch.setattr(runner, "shared", lambda: fake)
    fake.store.save(replace(make("4" * 24), id=ID))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["run"] = ID
    app.session_state["export"] = True
    calm(app.switch_page(f"views/pages/{page}.py").run())
    gc.collect()
    held = [item for item in gc.get_objects() if isinstance(item, Run) and item.id == ID]
    assert not held, [type(holder) for holder in gc.get_referrers(*held)]
