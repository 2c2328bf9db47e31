"""Links: which request each becomes, and what does not become one is a sentence (`python -m tests.golden.renew`)."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.browser import ROOT
from tests.golden import present
from tests.golden.renew import differences, golden

CLAIMS = (ROOT / "views/example_claims.json").read_bytes()
# Frozen files, of which some have the same id.
RUN, SWEEP = (
    re.sub(rb'"id": "\w+"', b'"id": "' + 24 * sign + b'"', (ROOT / f"tests/data/{name}.json").read_bytes(), count=1)
    for name, sign in (("run_1", b"1"), ("sweep_1", b"2"))
)


def links() -> dict[str, Any]:
    """Link → the request that Run asks for, None where it is disabled; and whether something is said of a value.

    Budget and strategies follow forecasts where a link does not say them: they are no part of it. A new link is one
    more key in the file.
    """
    made: dict[str, Any] = {}
    for link in golden("links"):
        page, _, query = link.partition("?")
        parameters = parse_qs(query)
        with tempfile.TemporaryDirectory() as home, present.server(Path(home)) as opened:
            shown = opened(page, parameters)
            said = any(value in shown.warnings for values in parameters.values() for value in values)
            asked = shown.run()
        for field, name in (("budget_s", "budget"), ("strategies", "strategies")):
            if asked is not None and name not in parameters:
                del asked[field]
        made[link] = {"said": said, "asks": asked}
    return made


def test_a_link_becomes_the_request_that_it_was_or_a_sentence() -> None:
    now = links()
    assert sum(link["said"] for link in now.values()) > 10 and differences(golden("links"), now) == []


def test_a_link_to_a_run_opens_it_on_its_page_whichever_page_is_named(tmp_path: Path) -> None:
    with present.server(tmp_path, RUN, SWEEP, CLAIMS) as opened:
        for run, own in ((json.loads(RUN), "baseline"), (json.loads(SWEEP), "sweep"), (json.loads(CLAIMS), "")):
            for page in ("compare", "sweep", "claims"):
                shown = opened(page, {"run": run["id"]})
                assert shown.app.query_params["run"] in (run["id"], [run["id"]]) and shown.app.button(key="again").label
                boxes = {box.key for box in shown.app.selectbox} & {"baseline", "sweep"}
                assert boxes == ({"baseline", own} if own else set())
        run = json.loads(RUN)
        shown = opened("compare", {"run": run["id"], "tab": "Code"})
        source = run["measurements"][0]["code"]["source"].strip()
        assert source in [code.value.strip() for code in shown.app.code]
