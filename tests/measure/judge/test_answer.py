"""The case of a run in a line."""

from msgspec.structs import replace

from measure.judge import answer
from measure.run.run import Axis
from tests import synthetic


def test_the_heading_names_the_case() -> None:
    run = synthetic.run(unhappy=False)
    assert answer.heading(run) == "image_sqrt · 100×64×64×3 · float32 · CPU:0"
    limited = replace(run, request=replace(run.request, memory_limit_mib=512, threads=1, device="GPU:1"))
    assert answer.heading(limited) == "image_sqrt · 100×64×64×3 · float32 · limit 512 MiB · 1 thread · GPU:1"
    swept = replace(run, kind="sweep", axes=[Axis(kind="size", name="batch", values=[1, 10, 1_000], scale="log")])
    sizes = "batch 1 to 1,000 · height 64 · width 64 · channels 3"
    assert answer.heading(swept) == f"image_sqrt · {sizes} · float32 · CPU:0"
    request = replace(run.request, workload="elsewhere", size={"batch": 1_000, "side": 8}, workload_options={"bits": 8})
    unknown = "elsewhere · batch 1,000 · side 8 · float32 · bits 8 · CPU:0"
    assert answer.heading(replace(run, request=request)) == unknown
