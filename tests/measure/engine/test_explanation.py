"""The job that explains a run: what it counts, what it leaves alone, and what it refuses."""

import gzip
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure.engine import explanation
from measure.judge import reasons
from measure.judge.findings import findings
from measure.pool.launcher import Launcher
from measure.run import why
from measure.run.request import RequestError
from tests.engine import measure, running, small_request
from tests.keeping import put
from tests.subjects import Subjects

SLUGS = ("map_fn.graph", "batched.xla")


def test_an_explanation_counts_what_ran_and_leaves_the_run_as_it_was(host: Launcher, tmp_path: Path):
    with running(host, tmp_path) as own:
        measured = measure(own, small_request(*SLUGS, size={"batch": 100, "features": 2}))
        assert not any(why.explained(item.why) for item in measured.measurements), "unless it is asked for"
        job = own.explain(measured.id)
        assert own.explain(measured.id) == job and own.snapshot(measured.id).state == "finished"
        own.work()
        assert own.queue() == ()
        run = own.snapshot(measured.id).run
        assert replace(run, measurements=[]) == replace(measured, measurements=[])
        for item, before in zip(run.measurements, measured.measurements, strict=True):
            assert replace(item, why=before.why) == before
            assert item.why.runtime_start_s == before.why.runtime_start_s > 0
        graph, xla = (why.explained(run.measurement(slug).why) for slug in SLUGS)
        of = {row.name: row.count for row in graph.ops}
        # By the loop's own arithmetic: its condition is asked once more than its body runs. The executor would leave a
        # quick op out of a trace after some 90 runs.
        assert of["TensorListGetItem"] == 200 and of["LogicalAnd"] == 101 and of["TensorListSetItem"] == 200
        assert graph.traces_per_call == 0 and graph.graph.functions >= 2
        assert xla.kernel_count >= 1 and xla.loops == 0 and not xla.op_count
        assert own.store.artifacts(run.id, "batched.xla") == [why.GRAPH, why.HLO, why.TRACE]
        assert "HloModule" in own.store.artifact(run.id, "batched.xla", why.HLO).decode()
        assert "= While(" in own.store.artifact(run.id, "map_fn.graph", why.GRAPH).decode()
        assert json.loads(gzip.decompress(own.store.artifact(run.id, "map_fn.graph", why.TRACE)))["traceEvents"]
        assert len(reasons.predicates(findings(run))) == 2


def test_what_cannot_be_explained_here_is_said(tmp_path: Path):
    with running(Subjects(), tmp_path) as own:
        run = measure(own, small_request("batched.eager"))
        details = own.host().details
        assert explanation.refusal(run, details, imported=False) is None
        assert "comes from elsewhere" in explanation.refusal(run, details, imported=True)
        other = replace(run, environment=run.environment | {"tensorflow": "2.20.0", "cpu_model": "Another one"})
        differs = "where cpu model is .+, and was Another one; tensorflow is 2.+, and was 2.20.0:.*«Measure again here»"
        assert re.search(differs, explanation.refusal(other, details, imported=False))
        earlier = replace(run, environment={"python": None})
        assert explanation.refusal(earlier, details, imported=False) is None, "what it does not know says nothing"
        with pytest.raises(RequestError, match="is not known here"):
            own.explain("f" * 24)
        (item,) = [item for item in run.measurements if not item.twin_of]
        put(own.store, replace(run, id="e" * 24, measurements=[replace(item, code=replace(item.code, source="1"))]))
        with pytest.raises(RequestError, match=r"the code of batched\.eager has changed"):
            own.explain("e" * 24)
