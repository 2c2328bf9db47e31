"""The end of a run: what becomes of strategies that were not done."""

import pytest
from msgspec.structs import replace

from measure.judge import analysis
from measure.model.run import OutcomeName, Replica, Status
from tests.samples import measurement, run_of


@pytest.mark.parametrize(("status", "outcome"), [("cancelled", "cancelled"), ("budget", "not_run")])
def test_a_strategy_whose_only_process_was_never_sampled_is_not_done(status: Status, outcome: OutcomeName) -> None:
    begun = replace(measurement("begun", []), replicas=[Replica(id=0, first_call_s=0.1, calls_per_sample=1)])
    run = analysis.close(run_of(begun, measurement("done", [[1e-3] * 5])), status, "", "2026-01-01T00:00:09Z")
    assert [item.outcome for item in run.measurements] == [outcome, "ok"]
