"""2,000 fuzzed files, 500 links and 500 requests: ``python -m tests.benchmarks.fuzz [--files 2000] [--links 500]
[--requests 500] [--seed 0]``; about 8 minutes. Exits with 1 where one does not end as it has to (`tests.fuzz`)."""

import argparse
import logging
import sys

from tests import fuzz
from tests.benchmarks import common
from tests.benchmarks.common import say


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--links", type=int, default=500)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first of each (0)")
    arguments = parser.parse_args()
    common.start("Fuzzed files, links and requests")
    logging.disable(logging.CRITICAL)  # what goes wrong is meant to
    found, first = fuzz.Found(), arguments.seed
    with common.own_folders() as folder:
        with fuzz.pages(folder / "home"):
            fuzz.try_files(range(first, first + arguments.files), found)
            slowest_s, found.slowest_s = found.slowest_s, 0.0
            say(f"files are tried, {len(found.wrong)} wrong")
            fuzz.try_links(range(first, first + arguments.links), found)
            say(f"links are tried, {len(found.wrong)} wrong")
        fuzz.try_requests(range(first, first + arguments.requests), found, folder / "requests")
    print(common.table(("what", "times"), sorted(found.counts.items())))
    print(f"\nSlowest: a file {slowest_s:.1f} s, a page {found.slowest_s:.1f} s. Wrong: {len(found.wrong)}")
    for sentence in found.wrong[:60]:
        print(f"  {sentence}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
