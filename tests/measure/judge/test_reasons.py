"""Why the same ops take longer in another mode: what is counted is said, and nothing else."""

import pytest
from msgspec.structs import replace

from measure.judge import reasons
from measure.judge.analysis import analyse
from measure.run.run import Limit, Measurement
from measure.run.why import Ran, Why
from tests.samples import measurement as timed_as
from tests.samples import run_of


def timed(mode: str, seconds: float, **counted: float) -> Measurement:
    """A strategy of one process with one sample; ``counted``: its faults, kernel_s and cpu_s."""
    item = timed_as(f"batched.{mode}", [[seconds]])
    (replica,) = item.replicas
    figures = {name: [value] for name, value in counted.items()}
    return replace(item, mapper="batched", mode=mode, replicas=[replace(replica, **figures)])


ROOF = Limit(
    seconds=1e-4, bytes=1, flops=1, bandwidth_bytes_per_s=1.0, flops_per_s=1.0, dispatch_s=1e-5,
    op_s=1e-5, call_s=3.1e-4,
)  # fmt: skip


@pytest.mark.parametrize(
    ("eager", "graph", "roof", "said"),
    [
        ((2e-4, {}), (6e-4, {}), ROOF, "starting a call: 300 µs of the 400 µs difference"),
        ((2e-4, {}), (6e-4, {}), None, ""),
        ((2e-4, {}), (4e-4, {}), ROOF, ""),
        ((1e-4, {}), (1e-3, {}), ROOF, ""),
        ((5e-3, {}), (9e-3, {}), ROOF, ""),
        (
            (1e-3, {"faults": 2.0, "kernel_s": 1e-5}),
            (9e-3, {"faults": 6_400.0, "kernel_s": 6e-3}),
            ROOF,
            "6,400 page faults per call: 5.99 ms of the 8.00 ms difference",
        ),
        ((5e-3, {"cpu_s": 9.5e-3}), (9e-3, {"cpu_s": 9.9e-3}), ROOF, "it uses 1.1 cores, batched.eager 1.9"),
        ((5e-3, {"cpu_s": 9.5e-3}), (9e-3, {"cpu_s": 1.6e-2}), ROOF, ""),
        ((6e-4, {}), (2e-4, {}), ROOF, ""),
    ],
)
def test_what_explains_at_least_half_of_a_difference_and_no_more_than_it_is_said(
    eager: tuple[float, dict[str, float]], graph: tuple[float, dict[str, float]], roof: Limit | None, said: str
) -> None:
    items = [timed(mode, seconds, **counted) for mode, (seconds, counted) in (("eager", eager), ("graph", graph))]
    run = replace(analyse(run_of(*items)), limit=roof)
    faster, slower = (run.measurement(item.strategy) for item in items)
    assert reasons.of_modes(run, faster, slower) == (f" ({said})" if said else "")
    other, ran = replace(slower, mapper="vectorized_map"), Why(ops=[Ran(name="Sqrt", count=1)])
    assert reasons.of_modes(run, faster, other) == ""
    alike = (replace(item, why=ran) for item in (faster, other))
    assert reasons.of_modes(run, *alike) == reasons.of_modes(run, faster, slower), "which runs the same ops"
