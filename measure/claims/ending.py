"""The end of runs of every kind, whatever has ended them."""

from collections.abc import Callable, Mapping

from measure.claims import tries
from measure.judge import analysis
from measure.model.run import Run, Status
from measure.sweep import findings

# Kind → what makes a run that has ended of one that grew: of the run, its status, the reason, and the time of day.
CLOSE: Mapping[str, Callable[[Run, Status, str, str], Run]] = {
    "compare": analysis.close,
    "sweep": findings.close,
    "claims": tries.close,
}
