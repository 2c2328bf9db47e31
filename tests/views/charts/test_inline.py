"""Charts for a page of somebody else's."""

import re

import pytest
from msgspec.structs import replace

from measure.model.run import Run
from tests import synthetic
from views.charts import inline
from views.ui import look


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


def test_they_have_the_pages_ink_and_the_variables_of_mappers(run: Run):
    chart = inline.draw(run, "latency")
    assert chart is not None
    seen = re.sub(r'<[^>]* opacity="0"[^>]*>', "", chart.svg)
    colours = set(re.findall(r'(?:fill|stroke)="([^"]*)"', seen)) - {"none", "transparent"}
    assert look.variable("batched") in colours
    assert {colour for colour in colours if "--mapbench-" not in colour} == {
        "currentColor",
        "rgba(128, 128, 128, 0.35)",
    }
    assert chart.alt.startswith("Latency of ")
    assert chart.about.startswith("Dot: time of one call")


def test_nothing_in_them_has_a_name_that_another_chart_of_a_page_could_have(run: Run):
    for name in ("latency", "memory"):
        chart = inline.draw(run, name)
        assert chart is not None and " id=" not in chart.svg


def test_what_has_nothing_to_show_is_no_chart(run: Run):
    assert inline.draw(replace(run, measurements=[]), "latency") is None


def test_every_mapper_has_a_light_and_a_dark_colour():
    for colours in (look.LIGHT, look.DARK):
        assert set(re.findall(r"--mapbench-\d+", look.variables(colours))) == {
            re.findall(r"--mapbench-\d+", variable)[0] for variable in look.VARIABLES
        }
