"""A server that is killed again and again under load: ``python -m tests.benchmarks.kills [--times 100]``; about three
seconds a time, two servers at a time on one store.

Every kill comes at another moment of a run. After each: no process is left, the store is whole, and every run that was
acknowledged is there, closed, with all strategies that were known by then. Exits with 1 where one is not.
"""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from measure.store.store import Store
from tests.benchmarks import common
from tests.benchmarks.common import say
from tests.measure.test_crash import Zygote, integrity, kill_often

_AT_ONCE = 2
# Kills of one go: spread over the moments of one run.
_GO = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="how often a server is killed (100)")
    arguments = parser.parse_args()
    common.start(f"{arguments.times} kills")
    begun = time.monotonic()
    with common.own_folders() as folder:
        home = folder / "home"
        zygotes = [Zygote(home, folder / f"{number}.lock") for number in range(_AT_ONCE)]

        def kill(number: int) -> dict[str, str]:
            """So many times that all of them together are as many as was asked for."""
            left, expected = arguments.times // _AT_ONCE + (number < arguments.times % _AT_ONCE), {}
            goes = 0
            while left > 0:
                count = min(_GO, left)
                phase = (goes * _AT_ONCE + number + 0.5) * 0.381966 % 1  # other moments in each go
                expected |= kill_often(zygotes[number], count, phase)
                left, goes = left - count, goes + 1
                say(f"server {number + 1}: {left} left")
            return expected

        try:
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                parts = list(threads.map(kill, range(_AT_ONCE)))
        except AssertionError as error:
            print(f"WRONG: {error}", flush=True)
            os._exit(1)  # the other one still kills
        finally:
            for zygote in zygotes:
                zygote.close()
        expected = {run_id: status for part in parts for run_id, status in part.items()}
        found = {entry.id: entry.status for entry in Store(home).entries()}
        whole = integrity(home)
    lost = expected.keys() - found.keys()
    differ = [run_id for run_id in expected.keys() & found.keys() if expected[run_id] != found[run_id]]
    counts = Counter(expected.values())
    print(common.table(("runs that were acknowledged", "times"), counts.most_common()))
    seconds = time.monotonic() - begun
    print(f"\n{arguments.times} kills in {seconds:.0f} s, no process left; the database says {whole[0][0]}")
    print(f"{len(lost)} runs lost, {len(differ)} otherwise than after their kill")
    return 1 if lost or differ or whole != [("ok",)] else 0


if __name__ == "__main__":
    sys.exit(main())
