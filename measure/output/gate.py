"""The result of a gate: for a terminal, as Markdown, as JUnit's XML and as JSON."""

import re
from xml.etree import ElementTree

import msgspec

from measure.judge.gate import ALARMS, Judged, Result
from measure.output import table
from measure.run import markdown, text
from measure.run.run import Measurement

SCHEMA = "mapbench.gate/1"
# Signs that XML has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Of a reason, which may quote an error of any length: JSON alone has it whole.
_REASON_SIGNS = 300
_HEAD = ("strategy", "BASE", "HEAD", "HEAD / BASE", "peak memory", "values", "verdict", "")


def render(result: Result) -> str:
    parts = [verdict(result), table.grid([[*_HEAD], *map(_cells, result.judged)]), "\n".join(result.notes)]
    return "\n\n".join(filter(None, parts))


def verdict(result: Result) -> str:
    """The verdict in a sentence."""
    of = f"HEAD ({result.head}) against BASE ({result.base})"
    allowed = f"{_share(result.allowed.slower)} slower and {_share(result.allowed.memory)} more memory are allowed"
    if result.word == "within":
        return f"Within what is allowed: {of}; {allowed}."
    named = [item for item in result.judged if item.word in ALARMS]
    named = named or [item for item in result.judged if item.word == "cannot tell"]
    words = "; ".join(f"{_name(item)}: {_why(item)}" for item in named) or "no strategy is judged"
    return f"{'Worse' if result.word in ALARMS else 'Cannot tell'}: {words}. {of}; {allowed}."


def as_markdown(result: Result) -> str:
    lines = [[markdown.plain(cell) for cell in _cells(item)] for item in result.judged]
    notes = "\n".join(f"- {markdown.plain(note)}" for note in result.notes)
    return "\n\n".join(filter(None, [f"**{markdown.plain(verdict(result))}**", markdown.grid(_HEAD, lines), notes]))


def as_junit(result: Result) -> str:
    """A test case for each strategy: an alarm is a failure, and what cannot be told, or is not judged, is skipped."""
    suite = ElementTree.Element("testsuite", name="mapbench gate", tests=str(len(result.judged)))
    for item in result.judged:
        case = ElementTree.SubElement(suite, "testcase", classname="mapbench.gate", name=item.name)
        if item.word != "within":
            ElementTree.SubElement(case, "failure" if item.word in ALARMS else "skipped", message=_why(item))
    for attribute, kind in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"*/{kind}"))))
    ElementTree.indent(suite)
    return _NOT_XML.sub("", ElementTree.tostring(suite, encoding="unicode", xml_declaration=True))


def as_json(result: Result, status: int, run_id: str | None) -> bytes:
    """``run_id``: of the run in which both sides were measured."""

    def side(item: Measurement | None) -> dict[str, object] | None:
        if item is None:
            return None
        latency_s, peak = item.latency and item.latency.median_s, item.memory and item.memory.peak_bytes
        return {"strategy": item.strategy, "outcome": item.outcome, "latency_s": latency_s, "peak_bytes": peak}

    document = {
        "schema": SCHEMA, "verdict": result.word, "sentence": verdict(result), "exit_status": status, "run": run_id,
        "base": result.base, "head": result.head, "max_regression": result.allowed.slower,
        "max_memory": result.allowed.memory,
        "strategies": [
            {"name": item.name, "verdict": item.word, "reason": item.reason, "ratio": item.ratio,
             "base": side(item.base), "head": side(item.head)}
            for item in result.judged
        ],
        "notes": result.notes,
    }  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def _cells(item: Judged) -> list[str]:
    sides = item.base, item.head
    latencies = (text.seconds(one.latency.median_s if one and one.latency else None) for one in sides)
    peaks = [text.size(one.memory.peak_bytes if one and one.memory else None) for one in sides]
    outcomes = [text.outcome(one.outcome) if one else text.MISSING for one in sides]
    both = (" → ".join(dict.fromkeys(pair)) for pair in (peaks, outcomes))
    ratio = item.ratio.words if item.ratio else text.MISSING
    return [_name(item), *latencies, ratio, *both, item.word, text.shortened(item.reason, 120)]


def _name(item: Judged) -> str:
    """The strategy; of leaders both."""
    names = dict.fromkeys(one.strategy for one in (item.base, item.head) if one and item.name not in one.strategy)
    return f"{item.name}: {' → '.join(names)}" if names else item.name


def _why(item: Judged) -> str:
    ratio = f"{item.ratio.words} as long" if item.ratio else ""
    return ", ".join(filter(None, [item.word, ratio, text.shortened(item.reason, _REASON_SIGNS)]))


def _share(share: float) -> str:
    return f"{100 * share:g}%"
