"""A claim on its page: what stands beside the verdict."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.claims import known
from tests.engine import ROOT
from tests.pages import StoredRunner, calm


def test_an_example_that_fails_leads_to_the_form_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner, "shared", lambda: StoredRunner(tmp_path))
    app = calm(AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run())
    app.query_params["claim"] = "example_1_1_pixels"
    app = calm(app.switch_page("views/pages/claims.py").run())
    (works,) = known.get("example_1_1_pixels").works_as
    link = f"- [{known.get(works).sentence}](claims?claim={works})"
    assert any("The form that works is measured in" in said.value and link in said.value for said in app.markdown)
