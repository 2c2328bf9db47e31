"""The arguments of `python -m measure admin`; apart from what it does, since the store takes a moment to load."""

import argparse


def add_to(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="order", required=True)
    commands.add_parser("list", help="all runs, the newest first").add_argument("--json", action="store_true")
    commands.add_parser("cancel", help="end a run, with what was measured").add_argument("id")
    for name, what in (("delete", "delete runs"), ("pin", "keep runs when room is made"), ("unpin", "no longer")):
        commands.add_parser(name, help=what).add_argument("id", nargs="+")
    prune = commands.add_parser("prune", help="delete all runs that match, but pinned ones and those that go on")
    prune.add_argument("--older-than", metavar="AGE", help="asked for longer ago: 30d, 12h, 2w")
    prune.add_argument("--origin", metavar="HASH", help="of one visitor, as the list names it")
    prune.add_argument("--larger-than", metavar="SIZE", help="10MiB")
    prune.add_argument("--keep-bytes", metavar="SIZE", help="the oldest, until all runs take no more")
    prune.add_argument("--dry-run", action="store_true", help="only say which")
    drain = commands.add_parser("drain", help="have the server take no new runs, as before a deployment")
    drain.add_argument("--wait", action="store_true", help="until nothing is measured any more")
    commands.add_parser("resume", help="have it take new runs again")
