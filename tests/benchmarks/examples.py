"""The examples of the first visit, measured anew: ``python -m tests.benchmarks.examples [NAME …]``; four minutes.

Look at what they say before they are committed: an example that is too noisy to rank teaches nobody.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from msgspec.structs import replace

from measure.judge.findings import findings
from measure.judge.verdict import verdict
from measure.run.encoding import decode, encode
from measure.run.run import Measurement, Timeline
from tests.benchmarks.common import ROOT, say
from views.result.examples import FOLDER

_GRAPHS = "batched.graph,map_fn.graph,vectorized_map.graph,vectorized_map.xla"
COMMANDS = {
    "image_sqrt": f"compare image_sqrt --strategies {_GRAPHS},batched.eager,loop.graph,loop.eager",
    "outer_product": f"compare outer_product --size side=8 --strategies {_GRAPHS},chunked.graph,loop.graph,loop.eager",
    "per_example_gradients": f"compare per_example_gradients --strategies {_GRAPHS},jacobian.graph",
    "batch_jacobian": f"compare batch_jacobian --strategies {_GRAPHS},map_fn.xla",
    # Mapped all at once its temporaries are beyond the limit; the rewrite, which knows better, is left out.
    "outer_reduce": "compare outer_reduce --memory-limit 48 "
    "--strategies chunked.graph,map_fn.graph,map_fn.xla,vectorized_map.graph,loop.graph",
    "claim": "claims same_random_numbers_for_all",
}
_BUDGET_S = 30
_MOST_STEPS = 48  # of a timeline of memory


def _thinned(item: Measurement) -> Measurement:
    """The measurement with fewer steps in its timeline, the peak and both ends among them."""
    if item.memory is None or item.memory.timeline is None:
        return item
    line = item.memory.timeline
    count = len(line.t_s)
    peak = max(range(count), key=line.live_bytes.__getitem__, default=0)
    places = sorted({*range(0, count, 1 + count // _MOST_STEPS), peak, count - 1} & set(range(count)))
    thin = Timeline(t_s=[line.t_s[place] for place in places], live_bytes=[line.live_bytes[place] for place in places])
    return replace(item, memory=replace(item.memory, timeline=thin))


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in names or COMMANDS:
            file = Path(folder) / f"{name}.json"
            command = [sys.executable, "-m", "measure", *COMMANDS[name].split(), "--quiet", "--json", str(file)]
            command += ["--why", "--budget", str(_BUDGET_S)] if COMMANDS[name].startswith("compare") else []
            subprocess.run(command, cwd=ROOT, env={**os.environ, "MAPBENCH_HOME": folder}, check=True)
            run = decode(file.read_bytes())
            run = replace(run, measurements=[_thinned(item) for item in run.measurements])
            (FOLDER / f"{name}.json").write_bytes(msgspec.json.format(encode(run), indent=-1))  # nobody reads them
            of = findings(run) if run.kind == "compare" else None
            say(f"{name}: {f'{of.word}: {verdict(of)}' if of else run.verdict}")


if __name__ == "__main__":
    main(sys.argv[1:])
