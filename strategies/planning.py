"""What a mapper is told about a case, and the options that it then chooses: arithmetic on metadata alone."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import strategies
from strategies.spec import Plan, Strategy
from workloads.spec import Leaf, Workload, leaves


def case_bytes(
    workload: Workload, size: Mapping[str, int], dtype: str, options: Mapping[str, Any] | None = None
) -> tuple[int, int, int]:
    """(bytes of the inputs, of the output, of what the strategy captures: its variables) for the whole batch."""
    workload = workload.variant(options)
    input_bytes = size["batch"] * sum(_bytes(workload, workload.element_input, size, dtype, options))
    output_bytes = sum(leaf.bytes for leaf in leaves(workload.result(size, dtype, options=options)))
    return input_bytes, output_bytes, sum(_bytes(workload, workload.variable_leaves, size, dtype, options))


def plan(
    workload: Workload,
    size: Mapping[str, int],
    dtype: str,
    strategy: Strategy | str,
    options: Mapping[str, Any] | None = None,
    device: str = "CPU:0",
    memory_limit_mib: int | None = None,
) -> Plan:
    """What the strategy's mapper is told about the case; ``options`` are the workload's."""
    strategy = strategies.parse(strategy) if isinstance(strategy, str) else strategy
    mapper = strategies.mapper(strategy.mapper)
    workload = workload.variant(options)
    cost = workload.call(workload.cost, size, dtype, options=options)
    input_bytes, result_bytes, _ = case_bytes(workload, size, dtype, options)
    outputs = _bytes(workload, workload.element_output, size, dtype, options)
    found = Plan(
        mode=strategy.mode,
        batch=size["batch"],
        input_bytes=input_bytes,
        output_bytes=size["batch"] * sum(outputs) if mapper.rewrite is None else result_bytes,
        output_leaves=len(outputs),
        input_leaves=len(_bytes(workload, workload.element_input, size, dtype, options)),
        element_ops=cost.ops,
        element_flops=cost.flops,
        element_temporary_bytes=cost.temporary_bytes,
        batched_temporary_bytes=size["batch"] * cost.batched_temporary_bytes,
        options={option.name: option.default for option in mapper.options} | dict(strategy.options),
        device=device,
        memory_limit_mib=memory_limit_mib,
    )
    return dataclasses.replace(found, options={**found.options, **chosen(found, strategy)})


def chosen(plan: Plan, strategy: Strategy) -> dict[str, Any]:
    """The options that the mapper chooses for the case, of those that are left at their defaults."""
    choose = strategies.mapper(strategy.mapper).choose
    if choose is None:
        return {}
    return {name: value for name, value in choose(plan).items() if name not in strategy.options}


def _bytes(
    workload: Workload, function: Any, size: Mapping[str, int], dtype: str, options: Mapping[str, Any] | None
) -> list[int]:
    """Bytes of each leaf that a function of the workload describes."""
    found: list[Leaf] = [] if function is None else leaves(workload.call(function, size, dtype, options=options))
    return [leaf.bytes for leaf in found]
