"""The fusions and other work of an XLA program, from its optimised HLO as text. Pure."""

import re
from dataclasses import dataclass

# Values that exist already, or are only looked at in another way: no work is done for them.
_FREE = frozenset(
    ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "iota", "after-all", "partition-id")
)
# Alone in a fusion, these write what they make.
_FILLS = frozenset(("broadcast", "iota"))
# What holds other computations, whose instructions are looked at by themselves.
_CALLS = frozenset(("fusion", "call", "while", "conditional"))

_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = .*?\s([a-z][a-z0-9\-]*)\((.*)$")
_CALLED = re.compile(r"(?:calls=|to_apply=|called_computations=\{)%?([\w.\-]+)")
_SOURCE = re.compile(r' (?:source_file="[^"]*"|source_line=\d+|source_end_line=\d+|source_column=\d+)')
_METADATA = re.compile(r", (?:metadata|frontend_attributes)=\{[^{}]*\}|, parameter_replication=\{[^{}]*\}")
_FUNCTION = re.compile(r"(a_inference_[a-z_]+?)_\d+__[\w.]*")
_STACK_FRAMES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Fusion:
    """Instructions that XLA made one kernel of: their opcodes, in order."""

    name: str
    ops: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """``others``: instructions outside of fusions that do work (products, sorts, copies), by opcode. ``loops``: how
    many while loops are left. ``inputs``: parameters of the program, of which there are fewer than the function has
    where XLA had to know values to compile it."""

    fusions: tuple[Fusion, ...]
    others: tuple[str, ...]
    loops: int
    inputs: int = 0


def without_paths(text: str) -> str:
    """The program without the places in source files that its instructions come from: these name folders."""
    return _STACK_FRAMES.sub("", _SOURCE.sub("", text))


def comparable(text: str) -> str:
    """The program without what differs between any two: where its instructions come from, and numbers of functions."""
    return _METADATA.sub("", _FUNCTION.sub(r"\1", text))


def parse(text: str) -> Program:
    """The fusions and other work in a program; a text that is none has neither."""
    computations: dict[str, list[tuple[str, str, str]]] = {}
    current: list[tuple[str, str, str]] | None = None
    inputs = 0
    in_entry = False
    for line in text.splitlines():
        if line.startswith("}"):
            current = None
        elif match := _COMPUTATION.match(line):
            current = computations.setdefault(match[1], [])
            in_entry = line.startswith("ENTRY")
        elif current is not None and (match := _INSTRUCTION.match(line)):
            current.append((match[1], match[2], match[3]))
            inputs += in_entry and match[2] == "parameter"
    inner = {
        called[1]
        for instructions in computations.values()
        for _, opcode, rest in instructions
        # What a reduction or a sort applies is part of that one instruction.
        if opcode not in ("call", "while", "conditional") and (called := _CALLED.search(rest))
    }
    fusions: list[Fusion] = []
    others: list[str] = []
    loops = 0
    for name, instructions in computations.items():
        if name in inner:
            continue
        for its_name, opcode, rest in instructions:
            if opcode == "fusion":
                called = _CALLED.search(rest)
                fused = [op for _, op, _ in (computations.get(called[1], []) if called else [])]
                ops = [op for op in fused if op not in _FREE] or [op for op in fused if op in _FILLS]
                fusions.append(Fusion(its_name, tuple(ops)))
            elif opcode == "while":
                loops += 1
            elif opcode not in _FREE and opcode not in _CALLS:
                others.append(opcode)
    return Program(tuple(fusions), tuple(others), loops, inputs)
