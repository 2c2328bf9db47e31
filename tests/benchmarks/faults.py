"""The whole list of faults: ``python -m tests.benchmarks.faults [--kind KIND] [--stage STAGE] [--first N]``.

Prints each case that ends otherwise than it has to, and how many there are of each kind; exits with 1 where there is
one. About 15 minutes.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from pathlib import Path

from tests import fault_list
from tests.benchmarks import common
from tests.benchmarks.common import say


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", help="only cases of this kind")
    parser.add_argument("--stage", choices=fault_list.STAGES, help="only cases of this stage")
    parser.add_argument("--moment", choices=fault_list.MOMENTS, help="only cases of this moment")
    parser.add_argument("--first", type=int, help="only so many, with every kind and stage among them")
    arguments = parser.parse_args()
    common.start("The list of faults")
    logging.disable(logging.CRITICAL)  # what goes wrong is meant to
    chosen = [
        case
        for case in fault_list.cases()
        if (arguments.kind in (None, case.kind))
        and arguments.stage in (None, case.stage)
        and arguments.moment in (None, case.moment)
    ]
    if arguments.first:
        chosen = fault_list.some(chosen, arguments.first)
    tried, wrong = Counter[str](), Counter[str]()
    begun = time.monotonic()
    with common.own_folders() as folder, fault_list.stand(Path(folder)) as stand:
        for number, case in enumerate(chosen, 1):
            tried[case.kind] += 1
            try:
                stand.try_case(case)
            except AssertionError as error:
                wrong[case.kind] += 1
                print(f"WRONG: {case}: {error}", flush=True)
                stand.close()
            if number % 20 == 0:
                say(f"{number} of {len(chosen)}, {wrong.total()} wrong")
    rows = [(kind, tried[kind], tried[kind] - wrong[kind]) for kind in sorted(tried)]
    print(common.table(("kind", "cases", "right"), rows))
    seconds = time.monotonic() - begun
    print(f"\nSeed {fault_list.SEED}: {tried.total() - wrong.total()} of {tried.total()} right, in {seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
