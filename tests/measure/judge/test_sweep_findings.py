"""Who leads where in a sweep, and the headline: along a line, on a map and over an option, with ties and crossings;
and whether a sweep that was measured again says the same."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from measure.judge import findings as comparisons
from measure.judge.reproduction import compare_sweeps, continues
from measure.judge.sweep_findings import analyse, comparison, findings
from measure.judge.sweep_findings import verdict as of
from measure.run.run import Point, Run
from tests import samples, simulation, synthetic
from tests.simulation import QUIET, Costs, Model

A, B, C, D, E = "loop.eager", "batched.graph", "map_fn.graph", "chunked.graph", "while_loop.graph"
LETTERS = {"A": A, "B": B, "C": C, "D": D, "E": E}


def line(*leading: str) -> Run:
    """A sweep over side = 1, 2, 4, …: ``leading`` are the letters of those that lead, or tie, at each point, and "?"
    where another was not timed."""
    values = [2**place for place in range(len(leading))]
    points = [point({"side": value}, names) for value, names in zip(values, leading, strict=True)]
    return replace(synthetic.sweep(), axes=[simulation.axis(values, "side")], points=points)


def map_(*rows: str) -> Run:
    """A map, its rows from the least side to the greatest: in each the letters of who leads at batch = 1, 10, 100, …"""
    cells = [row.split() for row in rows]
    batches, sides = [10**place for place in range(len(cells[0]))], [2**place for place in range(len(rows))]
    points = [
        point({"batch": batch, "side": side}, cells[y][x])
        for (x, batch), (y, side) in itertools.product(enumerate(batches), enumerate(sides))
        if cells[y][x] != "-"
    ]
    return replace(synthetic.sweep(), axes=[simulation.axis(batches), simulation.axis(sides, "side")], points=points)


def point(at: Mapping[str, int], names: str) -> Point:
    first = [LETTERS[name] for name in names.strip("?")]
    ranked = [*first, *(slug for slug in LETTERS.values() if slug not in first)]
    timed = samples.measurement("", samples.constant(1e-3, [1.0, 1.0]))
    measurements = [replace(timed, strategy=slug, latency=synthetic.latency(1e-3)) for slug in ranked]
    measurements += [samples.measurement("late.graph", [], outcome="not_run")] * ("?" in names)
    return Point(at=dict(at), status="complete", measurements=measurements, ranking=[first, [*ranked[len(first) :]]])


def verdict(run: Run) -> str:
    return of(findings(run))


def test_stretches_of_a_line_are_led_by_those_who_lead_or_tie_at_all_of_their_points() -> None:
    for leading, stretches in (
        ("A A A B B", "A1 B8"),
        ("A BCDE CBDE", "A1 BCDE2"),
        ("A AB B", "A1 B4"),
        ("AB BA", "AB1"),
        ("A B A B A B", "A1 B2 A4 B8 A16 B32"),
    ):
        made = findings(line(*leading.split())).stretches
        names = {slug: letter for letter, slug in LETTERS.items()}
        shown = ["".join(names[name] for name in part.names) + str(part.points[0].at["side"]) for part in made]
        assert " ".join(shown) == stretches, leading


def test_nobody_of_a_tie_is_crowned_and_what_was_not_ranked_is_told() -> None:
    assert "tied" in verdict(line("A", "BC")) and verdict(line("A", "A")).startswith(f"{A} is fastest at 2 of 2 points")
    assert verdict(line("AB", "BA")).startswith(f"{A} and {B} tie") and "or ties" in verdict(line("A", "AB"))
    assert verdict(line("A", "A", "B", "BC", "B")).startswith("Fastest, alone or tied: ")
    for run in (line(), map_("A B")):
        bare = replace(run, points=[replace(point_, ranking=[[]]) for point_ in run.points])
        assert verdict(bare).startswith("Nothing was ranked")
    cut = line("A", "B", "B")
    unranked = replace(cut, points=[*cut.points[:2], replace(cut.points[2], ranking=[])])
    assert verdict(unranked).endswith("Beyond 2 nothing is ranked.")


def sweep(
    costs_s: Costs, seed: int = 0, model: Model = QUIET, values: Sequence[int] = (1, 4, 16, 64), processes: int = 3
) -> Run:
    points = simulation.points(values, costs_s, np.random.default_rng(seed), model, processes)
    return analyse(replace(synthetic.sweep(), axes=[simulation.axis(values)], points=points))


def test_the_headline_answers_what_was_asked() -> None:
    crossing = {A: (1e-5, 3e-5), B: (1.6e-4, 5e-6)}  # at 6
    of_two, of_three = (findings(sweep(lines)) for lines in (crossing, crossing | {C: (1e-3, 3e-5)}))
    assert of_two.run.verdict.startswith(f"{B} overtakes {A} at batch 7 [")
    assert of_three.run.verdict.startswith(f"Fastest: {A} below batch 7, {B} from 7 [")
    assert of(of_three, A, B).startswith(f"{B} overtakes {A} at batch 7 [")
    assert of(of_three, C, B).startswith(f"{C} and {B}" if C < B else f"{B} and {C}")
    [first, second] = of_three.stretches
    assert first.crossing == of_three.crossovers[0] and second.crossing is None


def test_a_point_that_is_too_noisy_to_rank_as_a_comparison_has_no_leader_in_the_sweep_either() -> None:
    """Of a single process nothing tells how far processes differ."""
    made = findings(sweep({A: (1e-3, 1e-5), B: (1e-3, 6e-4)}, values=(1, 100), processes=1))
    for point_ in made.run.points:
        assert not comparisons.findings(comparison(made.run, point_)).tells and made.leaders(point_) == []
    assert "Too short to rank at every" in made.run.verdict and made.stretches == []


UNSURE = "a strategy that was not timed may be faster there."


def test_a_headline_crowns_nobody_at_a_point_that_is_not_sure() -> None:
    for run, says in (
        (line("A", "A?", "A"), f"{A} is fastest at 2 of 3 points. Not sure at 1 of 3 points: {UNSURE}"),
        (line("AB?", "BA?"), f"{A} and {B} may be fastest at 2 of 2 points. Not sure at 2 of 2 points: {UNSURE}"),
        (line("A?", "B?"), f"May be fastest: {A} up to side 1, {B} from 2. Not sure at 2 of 2 points: {UNSURE}"),
        (map_("A B? B"), f"Fastest: {A} at 1 of 3 points and {B} at 1. Not sure at 1 of 3 points: {UNSURE}"),
    ):
        assert verdict(run) == says
    # That only two were timed makes them no pair that somebody picked.
    run = line("AB?", "AB?")
    two = [replace(p, measurements=[*p.measurements[:2], p.measurements[-1]], ranking=[[A, B]]) for p in run.points]
    told = f"neither is clearly faster wherever both were timed. Not sure at 2 of 2 points: {UNSURE}"
    assert verdict(replace(run, points=two)).endswith(told)


def test_a_map_is_told_by_at_how_many_points_each_leads_and_says_that_some_tie() -> None:
    for rows, says in (
        ("A B B/A B B", f"Fastest: {B} at 4 of 6 points and {A} at 2."),
        ("A BC CB/A CB BC", f"Fastest, alone or tied: {B} at 4 of 6 points, {C} at 4 and {A} at 2."),
        # A point without a winner is not counted.
        ("A - B/A B B", f"Fastest: {B} at 3 of 5 points and {A} at 2."),
    ):
        assert verdict(map_(*rows.split("/"))) == says, rows


# Slug → (seconds per call, seconds per element): they cross at 20.
CROSSING = {A: (1e-4, 2e-5), B: (4e-4, 5e-6)}
VALUES = (1, 4, 16, 64, 256)


def again(seed: int, model: Model = simulation.MODELS[0], costs_s: Costs = CROSSING) -> Run:
    return sweep(costs_s, seed, model, VALUES)


def test_the_same_costs_are_reproduced_and_hardly_ever_refuted() -> None:
    pairs = [(seed, model) for seed in range(6) for model in simulation.MODELS]
    answers = [compare_sweeps(again(seed, model), again(1000 + seed, model)) for seed, model in pairs]
    outcomes = [answer.outcome for answer in answers]
    assert outcomes.count("refuted") <= 1 and outcomes.count("reproduced") >= 12, outcomes
    reproduced = next(answer for answer in answers if answer.outcome == "reproduced")
    assert "at 5 of 5 points the same strategies lead" in reproduced.sentence


def test_other_costs_are_refuted_where_the_leader_is_another_one() -> None:
    answer = compare_sweeps(again(0), again(1, costs_s={A: CROSSING[B], B: CROSSING[A]}))
    assert answer.outcome == "refuted" and "at 0 of 5 points the same strategies lead" in answer.sentence
    assert "beyond chance, at batch 1, batch 4" in answer.sentence


def test_one_that_goes_on_with_anothers_samples_continues_it() -> None:
    first = again(0)
    assert not continues(again(1), first) and continues(first, replace(first, points=first.points[:2]))
    assert continues(first, replace(first, points=[])), "nothing was measured, so nothing is repeated"
