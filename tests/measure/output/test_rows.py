"""The rows of a run, exactly, from made-up runs: their order, ranks, factors, baseline and columns."""

import csv

import pytest
from msgspec.structs import replace

from measure.output import columns, export, rows, table
from tests import synthetic
from tests.synthetic import MIB, OUTPUT, timed_run
from views.result import strategy_table


def test_ranked_first_then_wrong_then_the_others() -> None:
    shown = rows.make(synthetic.run(), "loop.eager")
    assert [row.slug for row in shown[:4]] == ["batched.xla", "batched.graph", "vectorized_map.xla", "batched.eager"]
    assert [row.rank for row in shown[:6]] == [1, 1, 3, 3, 5, 6]
    assert shown[11].slug == "dataset.graph" and shown[11].outcome == "wrong" and shown[11].rank is None
    assert {row.outcome for row in shown[12:]} == {"timeout", "out_of_memory", "failed", "unsupported", "cancelled"}
    assert [row.order for row in shown] == list(range(len(shown)))
    assert not any("#twin" in row.slug for row in shown), "twins are no rows"
    assert rows.make(replace(timed_run(), ranking=[])) == [], "a run with nothing in it yet"


def test_factor_is_baseline_over_own_with_its_interval() -> None:
    run = synthetic.run()
    by_slug = {row.slug: row for row in rows.make(run, "loop.eager")}
    fast, base = by_slug["batched.xla"], by_slug["loop.eager"]
    assert fast.factor == pytest.approx(base.median_s / fast.median_s)
    assert fast.factor_low < fast.factor < fast.factor_high
    assert base.factor == 1.0 and base.factor_low is None
    assert fast.of_limit == pytest.approx(fast.median_s / run.limit.seconds)


def test_the_baseline_is_what_is_wanted_or_usual_or_the_slowest_that_is_right() -> None:
    for wanted, chosen in (
        (("map_fn.xla",), "map_fn.xla"),
        (("not.there", None), "map_fn.graph"),
        ((), "map_fn.graph"),
    ):
        assert rows.choose_baseline(synthetic.run(), *wanted) == chosen
    run = timed_run(loop__eager=0.3, map_fn__xla=0.2, batched__graph=0.1)
    wrong = [replace(m, outcome="wrong" if m.strategy == "loop.eager" else m.outcome) for m in run.measurements]
    assert rows.choose_baseline(run) == "loop.eager"
    assert rows.choose_baseline(replace(run, measurements=wrong), "loop.eager") == "map_fn.xla"


def test_a_column_that_is_added_to_the_list_is_in_every_output(monkeypatch: pytest.MonkeyPatch) -> None:
    column = columns.Column(
        value=lambda row: row.input_bytes,
        unit=columns.BYTES,
        csv="input_bytes",
        text="inputs",
        page="inputs",
        help="Memory of the inputs.",
    )
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, column))
    run = synthetic.run()
    held = {row.slug: row.input_bytes for row in rows.listed(run)}
    assert set(held.values()) == {OUTPUT, None}
    words = {slug: "–" if size is None else "4.69 MiB" for slug, size in held.items()}
    in_csv = {line["strategy"]: line["input_bytes"] for line in csv.DictReader(export.table_csv(run))}
    assert in_csv == {slug: "" if size is None else str(size) for slug, size in held.items()}
    # The outcome may be long: where it is last, it stays last.
    assert table.head(run)[-2:] == ["inputs", "outcome"]
    assert {cells[1]: cells[-2] for cells in table.body(run)} == words
    grid = [line.split(" | ") for line in export.markdown(run).splitlines() if line.startswith("| ")]
    assert grid[0][-2] == "inputs" and [cells[-2] for cells in grid[2 : len(words) + 2]] == list(words.values())
    frame = strategy_table.frame(rows.make(run), run)
    assert frame["inputs"].dropna().tolist() == [OUTPUT / MIB] * list(held.values()).count(OUTPUT)
