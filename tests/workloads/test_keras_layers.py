"""Layers of Keras in element functions and rewrites: made once, as those of a model are."""

import json

import workloads
from strategies import script
from tests import warm
from tests.engine import ROOT
from tests.workloads.test_workloads import small
from workloads.case import Case

_CODE = """
import json
from measure.subject.state import variables_made

made = {{}}
for name, text in {scripts!r}.items():
    names = {{"__name__": "script"}}
    exec(compile(text, "<script>", "exec"), names)
    counts = []
    for _ in range(2):
        with variables_made() as variables:
            names["strategy"](names["elems"])
        counts.append(len(variables))
    made[name] = counts
print("RESULT", json.dumps(made))
"""


def test_calls_after_the_first_make_no_variables() -> None:
    """Else an eager strategy would be timed while it makes layers, which takes longer than to call them."""
    layers = workloads.get("keras_gradients").options[0].values or ()
    cells = [("time_distributed", {}, "time_distributed.eager")]
    cells += [("keras_gradients", {"layer": layer}, "loop.eager") for layer in layers]
    scripts = {}
    for slug, options, strategy in cells:
        workload = workloads.get(slug)
        scripts[f"{slug} {options}"] = script.build(Case(workload, small(workload), "float32", options), strategy)
    done = warm.run(_CODE.format(scripts=scripts), folder=ROOT)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout.rpartition("RESULT")[2])
    assert set(made) == set(scripts)
    assert all(first > 0 and second == 0 for first, second in made.values()), made
