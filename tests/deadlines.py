"""All deadlines of tests, in seconds: generous ones, since a wait that succeeds never lasts as long.

They are those of an idle laptop times the pace of the machine, which `tests/gate.py` measures.
"""

import os

PACE = float(os.environ.get("MAPBENCH_TEST_PACE") or 2.0)
# A message, a page that is drawn anew, a file that is written.
ANSWER_S = 30.0 * PACE
# A start of a server, a host or a browser; a small comparison; a command.
RUN_S = 90.0 * PACE
# What a killed process leaves is gone within 2 s, as promised; a machine that has other things to do takes longer.
GONE_S = 10.0 * PACE
