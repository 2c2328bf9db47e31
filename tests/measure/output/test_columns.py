"""One list of columns for page, terminal, Markdown and CSV: a new column is a line of it, and is everywhere."""

import csv
from pathlib import Path

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.output import columns, export, rows, table
from tests import synthetic
from tests.engine import ROOT
from tests.pages import StoredRunner, calm
from views.result import strategy_table

ID = "0123456789abcdef01234567"
MIB = 2**20
INPUT = 4_915_200


@pytest.fixture
def inputs(monkeypatch: pytest.MonkeyPatch) -> columns.Column:
    """A column that nobody has seen before, in the list."""
    column = columns.Column(
        value=lambda row: row.input_bytes,
        unit=columns.BYTES,
        csv="input_bytes",
        text="inputs",
        page="inputs",
        help="Memory of the inputs.",
    )
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, column))
    return column


def test_a_column_that_is_added_to_the_list_is_in_every_output(inputs: columns.Column):
    run = synthetic.run(ID)
    held = {row.slug: row.input_bytes for row in rows.listed(run)}
    assert set(held.values()) == {INPUT, None}
    words = {slug: "–" if size is None else "4.69 MiB" for slug, size in held.items()}
    in_csv = {line["strategy"]: line["input_bytes"] for line in csv.DictReader(export.table_csv(run))}
    assert in_csv == {slug: "" if size is None else str(size) for slug, size in held.items()}
    # The outcome may be long: where it is last, it stays last.
    assert table.head()[-2:] == ["inputs", "outcome"] and table.render(run).splitlines()[0].endswith(
        "inputs    outcome"
    )
    assert {cells[1]: cells[-2] for cells in table.body(run)} == words
    grid = [line.split(" | ") for line in export.markdown(run).splitlines() if line.startswith("| ")]
    assert grid[0][-2] == "inputs" and [cells[-2] for cells in grid[2 : len(words) + 2]] == list(words.values())
    frame = strategy_table.frame(rows.make(run), run)
    assert frame["inputs"].dropna().tolist() == [INPUT / MIB] * list(held.values()).count(INPUT)


def test_a_column_that_is_added_to_the_list_is_on_the_page_with_its_unit(
    inputs: columns.Column, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake = StoredRunner(tmp_path)
    fake.store.save(synthetic.run(ID))
    monkeypatch.setattr(runner, "shared", lambda: fake)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["run"] = ID
    calm(app.run())
    (everything,) = [each for each in app.dataframe if "process peak" in each.value.columns]
    shown = everything.proto.columns
    assert inputs.page in everything.value.columns and "%.4g MiB" in shown and "Memory of the inputs." in shown


@pytest.mark.parametrize("output", ["csv", "text", "page"])
def test_no_two_columns_of_an_output_have_the_same_head(output: columns.Output):
    heads = [column.head(output) for column in columns.of(output)]
    assert len(set(heads)) == len(heads) > 9


def test_a_strategy_without_figures_has_a_sign_in_text_and_nothing_in_csv():
    run = synthetic.run(ID)
    missing = [row for row in rows.listed(run) if row.median_s is None]
    latency = next(column for column in columns.of("text") if column.csv == "latency_s")
    assert missing and {latency.written(row) for row in missing} == {"–"}
    assert {latency.value(row) for row in missing} == {None}


def test_one_process_has_no_interval_in_text_and_a_rank_only_where_it_is_far_from_others():
    run = synthetic.run(ID, unhappy=False)
    alone = ("batched.eager", "map_fn.eager")  # one ties, one is three times slower than the next
    items = [replace(item, replicas=item.replicas[:1]) if item.strategy in alone else item for item in run.measurements]
    run = replace(run, measurements=items)
    head = table.head()
    cells = {line[1]: line for line in table.body(run)}
    at = [head.index(name) for name in ("rank", "95 % interval")]
    assert [cells["batched.eager"][place] for place in at] == ["–", "1 process"]
    assert [cells["map_fn.eager"][place] for place in at] == ["11", "1 process"]
    assert cells["batched.xla"][at[0]] == "1" and cells["batched.xla"][at[1]].count("ms") == 2
    # A file of figures has them as the run file does.
    lines = {line["strategy"]: line for line in csv.DictReader(export.table_csv(run))}
    assert lines["batched.eager"]["rank"] == "3" and float(lines["batched.eager"]["low_s"]) > 0
