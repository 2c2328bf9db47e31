"""Whatever a run is, a page shows it: of every kind and state, with hostile texts, with nothing in it, deleted."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from google.protobuf.json_format import MessageToDict
from msgspec.structs import replace

from measure.run import decision
from measure.run.encoding import encode
from measure.run.run import Error, Run, Warning
from measure.run.why import Fusion
from measure.store import imports
from tests import synthetic
from tests.explanations import GRAPH, ran
from tests.keeping import put
from tests.pages import RUN_ID, buttons, calm, example, open_page, words

TABS = ("Why", "Code", "Samples", "Details")


def claims(run_id: str = RUN_ID) -> Run:
    return replace(example(), id=run_id, digest={})


EVIL = (
    "![a](//evil.example/a) [b](//evil.example/b) https://evil.example/c www.evil.example d@evil.example "
    "<img src=//evil.example/e> $x$ :red[f] :material/home: **g** `h` ~i~ "
)
# What names no text of a person's, but one of a few words, a time or another part of the file.
_FIXED = {"schema", "id", "kind", "parent", "created", "started", "finished", "status", "outcome", "stage", "method",
          "term", "pays_off", "scale", "allocator", "need", "claims", "reference", "dtype", "digest"}  # fmt: skip


def hostile(run: Run) -> Run:
    """A run like this one, with hostile texts in place of all that may be any; equal ones stay equal."""
    texts = dict[str, str]()

    def changed(value: Any, name: str = "") -> Any:
        if isinstance(value, str) and name not in _FIXED:
            return texts.setdefault(value, f"{EVIL}{len(texts)}")
        if isinstance(value, list):
            return [changed(part, name) for part in value]
        if isinstance(value, dict):
            of_facts = name in ("size", "at", "figures", "workload_options", "values", "options")
            return {changed(key) if of_facts else key: changed(part, key) for key, part in value.items()}
        return value

    made = changed(msgspec.to_builtins(msgspec.structs.replace(run, digest={})))
    if run.decision:
        made["decision"]["at"] = run.decision.at
    made["analysis"] = msgspec.to_builtins(run.analysis)
    return imports.read(encode(msgspec.convert(made, Run)))


# What of an element is no Markdown: options of a list, what a chart says to who does not see it, code, and HTML.
NO_MARKDOWN = {"Selectbox.options", "VegaLiteChart.alt", "VegaLiteChart.spec", "Code.code_text", "Html.body"}
# What of `EVIL` would not be plain text: without a backslash, or, of a link that is found in what was escaped, at all.
RENDERED = re.compile(r"(?<!\\)(\[[ab]|<img|\$x|\*\*g|`h|~i)|:red|:material/home|https?:\\?/|www\\?\.|@\w")


def texts(node: Any) -> Iterator[tuple[str, str]]:
    """All texts of a page's elements, with the names of their kinds and fields."""

    def within(value: Any, kind: str, name: str = "") -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield f"{kind}.{name}", value
        elif isinstance(value, list | dict):
            for key, part in value.items() if isinstance(value, dict) else ((name, part) for part in value):
                yield from within(part, kind, key)

    if (message := getattr(node, "proto", None)) is not None:
        yield from within(MessageToDict(message, preserving_proto_field_name=True), message.DESCRIPTOR.name)
    for child in getattr(node, "children", {}).values():
        yield from texts(child)


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


def test_hostile_texts_stay_texts_on_every_page(fake):
    # Names that differ in signs only.
    signs = [replace(synthetic.failure("a", "b", "failed", name), strategy=name) for name in ("a.b", "a-b", "a b")]
    compared = synthetic.run(RUN_ID)
    fused, more = [Fusion(name="a fusion", ops=("an op",))], ran(("an instruction", 3, 0.0))
    reason = replace(
        GRAPH, fallbacks=["one"], note="so", loops=1, fusion_count=1, fusions=fused, other_instructions=more
    )
    decided = decision.make("title", "decision", "note", "name")
    items = [replace(item, why=reason) if item.latency else item for item in compared.measurements]
    for run, views in (
        (
            replace(compared, measurements=[*items, *signs], decision=decided),
            [{"present": "1"}, {"with": RUN_ID}, *({"tab": tab} for tab in TABS)],
        ),
        (synthetic.of_function(compared, "a note"), [{}]),
        (synthetic.sweep(RUN_ID), [{}]),
        (synthetic.winners(RUN_ID), [{}]),
        (claims(), [{}, {"claim": "vectorized_map_faster_than_map_fn"}, {"claim": "del_frees_at_once"}]),
    ):
        made = replace(hostile(run), status="interrupted")
        for state, view in (*(("finished", view) for view in views), ("running", {})):
            fake.show(made, state, imported=True, message=EVIL)
            shown = [pair for pair in texts(open_page(run.kind, run=RUN_ID, **view)._tree) if "evil" in pair[1]]
            assert shown
            for name, text in shown:
                assert "<img" not in text if name == "Html.body" else name in NO_MARKDOWN or not RENDERED.search(text)


def test_no_text_of_a_file_is_drawn_without_end(stored):
    long = "word " * 50_000
    warned = [Warning(code=code, message=long) for code in ("changed", "no_limit", "own")]
    for run, page in ((synthetic.run(RUN_ID), "compare"), (synthetic.sweep(RUN_ID), "sweep")):
        failed = [replace(point, measurements=_failing(point.measurements, long)) for point in run.points]
        run = replace(run, measurements=_failing(run.measurements, long), points=failed)
        put(stored.store, replace(run, warnings=warned, status="interrupted", stop_reason=long))
        app = open_page(page, run=RUN_ID)
        texts = [element.value for kind in ("markdown", "caption", "html", "warning") for element in app.get(kind)]
        assert len(texts) > 10 and max(map(len, texts)) < 20_000
    many = [synthetic.failure(f"m{number}", "graph", "failed", f"of {number}") for number in range(300)]
    put(stored.store, replace(synthetic.run(RUN_ID), measurements=many, ranking=[], control=None))
    app = open_page(run=RUN_ID)
    assert "250 more reasons" in words(app) and len(app.get("html")) < 100


def _failing(items, words):
    error = Error(type="Error", message=words, detail=words)
    return [replace(item, error=error if item.error else None) for item in items]


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
