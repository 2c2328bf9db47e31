"""The plan that a mapper is told of a case, and the options that it then chooses: arithmetic on metadata alone."""

import dataclasses
from typing import Any

import strategies
from strategies.spec import Plan, Strategy
from workloads.case import Case


def plan(case: Case, strategy: Strategy | str, memory_limit_mib: int | None = None) -> Plan:
    """Return what the strategy's mapper is told about the case; ``memory_limit_mib`` is the request's."""
    strategy = strategies.parse(strategy) if isinstance(strategy, str) else strategy
    mapper = strategies.mapper(strategy.mapper)
    outputs = [leaf.bytes for leaf in case.leaves(case.workload.element_output)]
    plan = Plan(
        mode=strategy.mode,
        batch=case.batch,
        input_bytes=case.input_bytes,
        output_bytes=case.batch * sum(outputs) if mapper.rewrite is None else case.output_bytes,
        output_leaves=len(outputs),
        input_leaves=len(case.leaves(case.workload.element_input)),
        element_ops=case.cost.ops,
        element_flops=case.cost.flops,
        element_temporary_bytes=case.cost.temporary_bytes,
        batched_temporary_bytes=case.batch * case.cost.batched_temporary_bytes,
        options={option.name: option.default for option in mapper.options} | dict(strategy.options),
        device=case.device,
        memory_limit_mib=memory_limit_mib,
    )
    return dataclasses.replace(plan, options={**plan.options, **chosen(plan, strategy)})


def chosen(plan: Plan, strategy: Strategy) -> dict[str, Any]:
    """Return the options that the mapper chooses for the case, of those that are left at their defaults."""
    choose = strategies.mapper(strategy.mapper).choose
    if choose is None:
        return {}
    return {name: value for name, value in choose(plan).items() if name not in strategy.options}
