"""A gate's comparison with simulated subjects of two launchers: who is measured where, for how long, what is told."""

import dataclasses
from collections.abc import Callable, Mapping

import pytest

from measure.engine.bench import Settings
from measure.engine.gate import PAIRS, ROUNDS, Gate, GateTurns
from measure.judge.gate import LEAST_PAIRS, Allowed, Result
from measure.output import gate as output
from measure.run.encoding import encode
from measure.run.request import parse
from measure.run.run import BASE
from measure.store import imports
from measure.subject.messages import Spec
from tests.subjects import Message, Subjects, error, leave_the_machine, measured

SLUGS = ("map_fn.graph", "batched.graph")
SETTINGS = Settings(probes=False, process_peaks=False)


@dataclasses.dataclass
class Sides:
    """A gate of two strategies, and the launchers of both sides, whose calls take so long, or 5 ms."""

    head: Mapping[str, float] = dataclasses.field(default_factory=dict)
    base: Mapping[str, float] = dataclasses.field(default_factory=dict)
    leader: bool = False
    answer: Callable[[Spec], list[Message]] = lambda spec: measured()
    is_base_right: bool = True
    more_memory: float = 0.05

    def run(self, patch: pytest.MonkeyPatch) -> Result:
        leave_the_machine(patch)
        self.here = Subjects(latencies_s=self.head, answers={"memory": self.answer}, facts={"python": "3.99"})
        self.there = Subjects(
            latencies_s=self.base, answers={"memory": lambda spec: measured(right=self.is_base_right)}
        )
        self.there._numbers = self.here._numbers  # as launchers beside each other have them
        request = parse({"workload": "square", "strategies": list(SLUGS), "budget_s": 60})
        self.gate = Gate(
            "0" * 24, request, self.here, lambda view: None, base=("main", request, self.there), name=".",
            allowed=Allowed(0.05, self.more_memory), leader=self.leader, settings=SETTINGS,
        )  # fmt: skip
        self.made = self.gate.run()
        return self.gate.result()


def test_each_side_measures_by_its_own_launcher_pair_after_pair_until_all_is_told(monkeypatch: pytest.MonkeyPatch):
    sides = Sides({"map_fn.graph": 0.0065})
    assert [one.word for one in sides.run(monkeypatch).judged] == ["slower", "within"]
    assert (sides.made.status, sides.made.stop_reason) == ("complete", "no more samples are needed")
    processes = PAIRS * -(-LEAST_PAIRS // PAIRS)
    timing = ["timing"] * processes * len(SLUGS)
    assert sides.here.roles == ["memory", "memory", *timing]
    assert sides.there.roles == ["reference", "memory", "memory", *timing]
    assert sides.here.most_alive == sides.there.most_alive == PAIRS * len(SLUGS)
    assert sides.here.living == sides.there.living == []
    for slug in SLUGS:
        head, base = ([replica.rounds for replica in sides.gate[name].replicas] for name in (slug, slug + BASE))
        assert head == base and len(head) == processes and len({*head[0]}) == ROUNDS
    assert sides.made.environment["python"] == "3.99"


def test_a_gate_ends_where_its_time_is_over_between_two_pairs(monkeypatch: pytest.MonkeyPatch):
    sides = Sides()
    sides.run(monkeypatch)
    sides.gate._allowed = Allowed(0.0, 0.05)  # of equal figures it cannot be told whether they are beyond it
    spent = "the time budget was spent before map_fn.graph and batched.graph could be told"
    assert GateTurns(sides.gate, sides.gate.clock.now_s, sides.gate.clock.now_s).race(SLUGS) == ("budget", spent)


def test_a_wrong_strategy_is_not_timed(monkeypatch: pytest.MonkeyPatch):
    sides = Sides(answer=lambda spec: measured(right=False))
    assert [one.word for one in sides.run(monkeypatch).judged] == ["wrong", "wrong"] and sides.here.turns == []


@pytest.mark.parametrize(
    ("failing", "base", "word", "leaders"),
    [
        (None, {"map_fn.graph": 0.001}, "slower", "map_fn.graph#base → batched.graph"),
        ("batched.graph", {"batched.graph": 0.001}, "slower", "batched.graph#base → map_fn.graph"),
        ("map_fn.graph", {"batched.graph": 0.002}, "within", "batched.graph#base → batched.graph"),
    ],
)
def test_the_leaders_are_judged_of_all_that_either_side_can_call(
    failing: str | None, base: dict[str, float], word: str, leaders: str, monkeypatch: pytest.MonkeyPatch
):
    sides = Sides(
        {"batched.graph": 0.002}, base, leader=True,
        answer=lambda spec: [error()] if spec.name == failing else measured(),
    )  # fmt: skip
    result = sides.run(monkeypatch)
    assert result.word == word and f"the fastest: {leaders}" in output.render(result)


@pytest.mark.parametrize(
    ("peaks", "is_right", "word", "times"),
    [((9, 4, 8), True, "within", 2), ((9, 4, 8), False, "within", 2), ((9, 8, 8, 7, 6), True, "more memory", 5)],
)
def test_more_memory_counts_where_each_call_needs_it(
    peaks: tuple[int, ...], is_right: bool, word: str, times: int, monkeypatch: pytest.MonkeyPatch
):
    left = list(peaks)

    def answer(spec: Spec) -> list[Message]:
        messages = measured(right=is_right)
        messages[1]["memory"]["peak_bytes"] = left.pop(0) * 2**20 if spec.name == "map_fn.graph" else 2**20
        return messages

    sides = Sides(answer=answer, is_base_right=is_right, more_memory=4.0)
    assert sides.run(monkeypatch).judged[0].word == word and len(peaks) - len(left) == times
    assert sides.gate["map_fn.graph"].memory.peak_bytes == min(peaks[:times]) * 2**20


def test_its_run_can_be_written_read_and_imported_as_any_other(monkeypatch: pytest.MonkeyPatch):
    sides = Sides()
    sides.run(monkeypatch)
    run = imports.read(encode(sides.made))
    assert encode(run) == encode(sides.made) and [item.twin_of for item in run.measurements] == [None, None, *SLUGS]
    (warning,) = run.warnings
    assert warning.code == "gate" and "main, whose strategies end in #base" in warning.message
