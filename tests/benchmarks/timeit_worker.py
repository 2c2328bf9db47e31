"""One process of `timeit`: runs a strategy's script and prints the seconds per call of each repeat as JSON."""

import json
import sys
import timeit
from pathlib import Path

from measure.subject.roles import load


def main() -> None:
    module = load(Path(sys.argv[1]).read_text(encoding="utf-8"), "strategy")
    strategy, elems = module.strategy, module.elems
    strategy(elems)  # the first call traces and compiles
    timer = timeit.Timer("strategy(elems)", globals={"strategy": strategy, "elems": elems})
    number, _ = timer.autorange()
    print(json.dumps([seconds / number for seconds in timer.repeat(number=number)]))


if __name__ == "__main__":
    main()
