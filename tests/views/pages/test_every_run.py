"""Whatever a run is, a page shows it: of every kind and state, with hostile texts, with nothing in it, deleted."""

import re

from msgspec.structs import replace

from measure.run.run import Run
from tests import synthetic
from tests.keeping import put
from tests.pages import RUN_ID, buttons, calm, example, open_page, words
from tests.synthetic import HOSTILE

TABS = ("Why", "Code", "Samples", "Details")


def claims(run_id: str = RUN_ID) -> Run:
    return replace(example(), id=run_id, digest={})


def hostile(run_id: str = RUN_ID) -> Run:
    """A run whose texts would be Markdown, HTML or code of Streamlit."""
    run = synthetic.run(run_id)
    evil = [
        replace(m, strategy=f"{HOSTILE}{index}", mapper=HOSTILE, mode=HOSTILE, break_even=[])
        for index, m in enumerate(run.measurements[:2])
    ]
    # Names that differ in signs only.
    signs = [replace(synthetic.failure("a", "b", "failed", name), strategy=name) for name in ("a.b", "a-b", "a b")]
    measurements = [*evil, *signs, *(m for m in run.measurements if m.outcome != "ok")]
    ranking = [[item.strategy for item in evil]]
    changes = {"measurements": measurements, "ranking": ranking, "environment": {"cpu_model": HOSTILE}}
    changes["request"] = replace(run.request, device=HOSTILE[:20], workload=HOSTILE, size={HOSTILE: 1}, dtype=HOSTILE)
    return replace(run, verdict=HOSTILE, stop_reason=HOSTILE, status="interrupted", **changes)


def bare(measurements: int) -> Run:
    run = synthetic.run(RUN_ID)
    kept = [
        replace(m, memory=None, correctness=None, latency=None, replicas=[], code=None)
        for m in run.measurements[:measurements]
    ]
    return replace(run, measurements=kept, ranking=[], limit=None, control=None, environment={}, verdict="")


def test_a_run_of_every_kind_and_state_is_shown_on_its_page(stored):
    kinds = (synthetic.run(RUN_ID), synthetic.sweep(RUN_ID), synthetic.winners(RUN_ID), claims())
    unfinished = (
        synthetic.partial(0, RUN_ID),
        replace(synthetic.sweep(RUN_ID), points=synthetic.sweep().points[:2], crossovers=[], fits=[], verdict=""),
        replace(claims(), evidence=[]),
    )
    for run in kinds:
        for status, imported in (("complete", True), ("cancelled", False), ("interrupted", True), ("budget", False)):
            stored.show(replace(run, status=status), imported=imported)
            app = open_page(run.kind, run=RUN_ID)
            assert "again" in buttons(app) and not buttons(app) & {"cancel", "stop"}
            assert any(":material/upload" in each.value or "imported" in each.value for each in app.caption) == imported
    for run in unfinished:
        for state in ("queued", "running"):
            stored.show(replace(run, finished=None, status="interrupted"), state, position=1)
            app = open_page(run.kind, run=RUN_ID)
            assert "cancel" in buttons(app) and "again" not in buttons(app)


def test_hostile_texts_stay_texts_on_every_tab(fake):
    fake.show(hostile())
    for tab in TABS:
        app = open_page(run=RUN_ID, tab=tab)
        assert "<img" not in " ".join(element.value for element in app.html)  # and Markdown needs a backslash:
        for element in (*app.markdown, *app.caption, *app.warning):
            assert not re.search(r"(?<!\\)(<img|\$x|\*\*b)|:red|:smile", element.value), element.value


def test_a_link_opens_a_tab_and_a_run_with_little_in_it_has_them_too(fake):
    for tab in TABS:
        fake.show(synthetic.run(RUN_ID))
        app = open_page(run=RUN_ID, tab=tab)
        # The lines to take and the picture are there on every tab.
        drawn = (len(app.code) - 1, len(app.dataframe), len(app.get("vega_lite_chart")) - 1)
        assert drawn == {"Why": (0, 0, 1), "Code": (1, 0, 0), "Samples": (0, 0, 1), "Details": (0, 2, 1)}[tab]
        for measurements in (0, 1):
            fake.show(bare(measurements))
            open_page(run=RUN_ID, tab=tab)


def test_a_run_that_is_deleted_while_it_is_shown_is_a_sentence_from_then_on(stored):
    for run in (synthetic.run(RUN_ID), synthetic.sweep("a" * 24), claims("b" * 24)):
        put(stored.store, run)
        app = open_page(run.kind, run=run.id)
        assert "again" in buttons(app)
        stored.store.delete([run.id])
        app = calm(app.run())
        assert "again" not in buttons(app) and "deleted" in words(app) and run.id in words(app)
