"""Made-up explanations of strategies, for tests of the sentences and of the tab: nothing here was measured."""

from measure.run.why import Graph, Ran, Why

MS = 1e-3


def ran(*rows: tuple[str, int, float]) -> list[Ran]:
    return [Ran(name=name, count=count, seconds=seconds) for name, count, seconds in rows]


EAGER = Why(call_s=10 * MS, profiled_s=10 * MS, python_s=9.3 * MS, op_count=300, in_ops_s=0.6 * MS,
            ops=ran(("Mul", 200, 0.4 * MS), ("Add", 100, 0.2 * MS)))  # fmt: skip
GRAPH = Why(call_s=2 * MS, profiled_s=4 * MS, python_s=0.2 * MS, op_count=1_005, in_ops_s=0.5 * MS,
            ops=ran(("Mul", 1_005, 0.5025 * MS)),
            graph=Graph(nodes=38, top_nodes=10, functions=2, by_op=ran(("StatelessWhile", 1, 0.0))))  # fmt: skip
FUSED = Why(call_s=0.1 * MS, profiled_s=0.2 * MS, kernel_count=1, in_kernels_s=0.09 * MS, loops=0, fusion_count=1,
            kernels=ran(("fusion", 1, 0.09 * MS)))  # fmt: skip
# On a GPU the host starts ops while kernels run, or waits for them.
ON_GPU = Why(call_s=1 * MS, profiled_s=1 * MS, python_s=0.3 * MS, waiting_s=0.55 * MS, op_count=3, in_ops_s=0.05 * MS,
             ops=ran(("Mul", 3, 0.05 * MS)), kernel_count=2, in_kernels_s=0.9 * MS, in_streams_s=0.9 * MS,
             kernels=ran(("gemm", 2, 0.9 * MS)))  # fmt: skip
# An element function that XLA compiles by itself, called from Python.
ELEMENT = Why(call_s=9 * MS, profiled_s=9 * MS, python_s=7.2 * MS, op_count=81, in_ops_s=0.162 * MS,
              ops=ran(("StridedSlice", 81, 0.162 * MS)), kernel_count=20, in_kernels_s=0.02 * MS, of_element=True,
              kernels=ran(("fusion", 20, 0.02 * MS)), loops=0, fusion_count=1)  # fmt: skip
