"""`python -m measure decide`: the decision on a run that is kept, written, read and removed."""

import argparse

from measure.output.export_command import kept
from measure.run.decision import account, lines, make
from measure.run.request import RequestError
from measure.store.store import Store

_TEXTS = {"title": "the title of the decision", "decision": "what is decided", "note": "what else is to be known"}


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="the id of a run that is kept")
    for name, about in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar="TEXT", help=about)
    parser.add_argument("--by", metavar="NAME", help="who decides (the name of this account)")
    parser.add_argument("--clear", action="store_true", help="remove what stands there")


def run(arguments: argparse.Namespace) -> int:
    """Write the texts that are given over those that stand there, and print what stands there then. Raises RequestError
    with one sentence."""
    there = kept(arguments.run).decision
    given = {name: words for name in _TEXTS if (words := getattr(arguments, name)) is not None}
    if given or arguments.clear or arguments.by is not None:
        before = {name: getattr(there, name) for name in _TEXTS} if there and not arguments.clear else {}
        try:
            there = make(**{**before, **given}, by=account() if arguments.by is None else arguments.by)
            has_ended = Store().decide(arguments.run, there)
        except ValueError as error:
            raise RequestError(str(error)) from None
        if not has_ended:
            raise RequestError(f"run {arguments.run} has not ended: what it shows can be decided on then")
    print("\n".join("\n".join(lines(there)).splitlines()) if there else f"nothing is decided on run {arguments.run}")
    return 0
