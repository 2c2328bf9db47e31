"""Where a page says what a run cannot tell: beside the verdict whole, and of strategies where notes are."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.judge import advice, rules
from measure.model.run import Run, Warning
from measure.output import rows
from tests import synthetic
from tests.engine import ROOT
from tests.pages import RUN_ID, ExplainedRunner, calm, open_page, words
from views.result import heading, problems, tables
from views.result.sweep import doubts

DRIFT = Warning(code="drift", message="the machine became 30 % slower: close others and measure again")
NO_LIMIT = advice.no_limit("division by zero")
# As long as both are, TensorFlow's words could be a page, and ours end with what to do.
SAID = Warning(code="tensorflow", message="word " * 50)
OURS = Warning(code="chosen", message="ours " * 50 + "measure again")


@pytest.fixture(scope="module")
def run() -> Run:
    return replace(synthetic.run(RUN_ID, unhappy=False), warnings=[])


def with_notes(run: Run, of_run: list[Warning], **of_strategies: list[Warning]) -> Run:
    """``of_strategies``: warnings by slug, with ``_in_`` for the dot."""
    by_slug = {name.replace("_in_", "."): warnings for name, warnings in of_strategies.items()}
    items = [replace(item, warnings=by_slug.get(item.strategy, [])) for item in run.measurements]
    return replace(run, warnings=of_run, measurements=items)


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], AppTest]:
    def open_page(run: Run) -> AppTest:
        monkeypatch.setattr(runner, "shared", lambda: ExplainedRunner(run))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = RUN_ID
        return calm(app.run())

    return open_page


def test_doubts_about_the_run_are_apart_from_its_notes_and_whole(run: Run) -> None:
    noted = with_notes(run, [NO_LIMIT, DRIFT], batched_in_xla=[OURS, SAID])
    assert tables.doubts(noted) == ["The machine became 30 % slower: close others and measure again."]
    notes = problems.notes(rows.make(noted), noted)
    assert NO_LIMIT.message in notes and DRIFT.message not in notes
    assert f"batched.xla: {OURS.message}" in notes
    (said,) = [note for note in notes if "word" in note]
    assert len(said) < len(SAID.message) and said.endswith("…")


def test_every_rule_about_a_run_is_a_doubt_and_every_rule_about_a_strategy_is_noise() -> None:
    of_runs = {"busy_before", "busy_during", "drift", "coarse_resolution", "no_control", "typical_differs"}
    assert of_runs == rules.OF_A_VERDICT
    # Two are of files of earlier methods alone, which show them as before.
    of_strategies = {"few_rounds", "varies", "processes_differ"} | {"halves_differ", "multimodal"}
    assert of_strategies == rules.OF_A_LATENCY


def test_a_point_of_a_sweep_has_no_control_by_plan_and_does_not_complain() -> None:
    points = [point for point in synthetic.sweep().points if len(point.ranking) > 1]
    assert points and all(point.control is None for point in points)
    assert not {"no_control"} & {warning.code for point in points for warning in point.warnings}


def test_noise_of_strategies_comes_first_and_is_not_folded_away(run: Run) -> None:
    chosen = [advice.chosen(f"chunk {number}", {}) for number in range(4)]
    quiet = with_notes(run, [], batched_in_xla=chosen)
    noisy = with_notes(run, [], batched_in_xla=chosen, map_fn_in_xla=[Warning(code="multimodal", message="two paces")])
    assert problems.notes(rows.make(noisy), noisy)[0] == "map_fn.xla: two paces"
    assert problems.has_noise(rows.make(noisy)) and not problems.has_noise(rows.make(quiet))


def test_a_page_says_doubts_between_the_verdict_and_the_figures(run: Run, visit: Callable[[Run], AppTest]) -> None:
    chosen = [advice.chosen(f"chunk {number}", {}) for number in range(4)]
    app = visit(with_notes(run, [DRIFT], batched_in_xla=chosen))
    said = [value for each in app.markdown if "became 30 %" in (value := each.value.replace("\\", ""))]
    assert said == [":orange[:material/warning:] The machine became 30 % slower: close others and measure again."]
    (folded,) = [each for each in app.expander if each.label.startswith("Good to know")]
    assert folded.label == "Good to know (4)" and not folded.proto.expanded
    noisy = with_notes(run, [], batched_in_xla=[*chosen, Warning(code="varies", message="two paces")])
    (open_,) = [each for each in visit(noisy).expander if each.label.startswith("Good to know")]
    assert open_.label == "Good to know (5)" and open_.proto.expanded


@pytest.mark.parametrize(
    ("page", "make", "following"), [("compare", synthetic.run, "Take"), ("sweep", synthetic.sweep, "Latency")]
)
def test_what_is_to_be_known_of_a_function_of_ones_own_is_below_the_verdict(
    page: str, make: Callable[[str], Run], following: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = synthetic.of_function(make(RUN_ID), "It draws [random] numbers.", "It keeps state.")
    monkeypatch.setattr(runner, "shared", lambda: ExplainedRunner(noted))
    app = open_page(page, run=RUN_ID)
    (said,) = [each.value.replace("\\", "") for each in app.caption if "About" in each.value]
    assert said == "About softened:\n- It draws [random] numbers.\n- It keeps state."
    shown = [str(each.value) for each in app.main if each.type in ("markdown", "html", "caption")]
    drawn = "".join(shown).replace("\\", "")
    verdict = drawn.index(heading.verdict(noted))
    assert verdict < drawn.index(said) < drawn.index(following, verdict)


def test_a_finished_run_says_that_it_has_no_control(run: Run, visit: Callable[[Run], AppTest]) -> None:
    without = replace(run, control=None, warnings=[Warning(code="no_control", message="it was not measured")])
    assert "It was not measured." in words(visit(without))


def test_a_sweep_says_at_which_points_its_machine_was_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy, busier = advice.busy_during(0.8), advice.busy_during(1.2)
    run = synthetic.sweep(RUN_ID)
    points = [
        replace(point, warnings=list(filter(None, warnings)))
        for point, warnings in zip(run.points, ([NO_LIMIT], [busy], [busier, DRIFT], [busier], []), strict=True)
    ]
    noted = replace(run, points=points)
    sentences = [
        "At batch 10, and likewise at 2 more points: other programs used 0.8 cores while latencies were sampled: "
        "close them and measure again.",
        "At batch 100: the machine became 30 % slower: close others and measure again.",
    ]
    assert doubts(noted) == sentences and doubts(run) == []
    monkeypatch.setattr(runner, "shared", lambda: ExplainedRunner(noted))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.switch_page("views/pages/sweep.py")
    app.query_params["run"] = RUN_ID
    said = words(calm(app.run()))
    assert all(sentence in said for sentence in sentences)
