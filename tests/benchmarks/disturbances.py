"""What disturbs a machine while something is measured on it."""

import time
from collections.abc import Sequence

import numpy as np
import psutil

from measure.machine import load

# A look at the machine's pace: products of a matrix so small that one thread makes them, some 0.3 ms of them at a time.
_LOOK_S, _SIDE, _PRODUCTS = 0.3, 32, 64


class Disturbances:
    """What disturbed the machine from the making of this on."""

    def __init__(self) -> None:
        self._load, self._times = load.Watch(), psutil.cpu_times()
        self._paces_s: list[float] = []
        self.look()

    def look(self) -> None:
        """Time a fixed computation for a while, in this thread and while nothing is measured: neighbours on the same
        processor slow it down, and no counter of the system shows them."""
        matrix = np.ones((_SIDE, _SIDE))
        end_s = time.perf_counter() + _LOOK_S
        while (begun_s := time.perf_counter()) < end_s:
            for _ in range(_PRODUCTS):
                matrix @ matrix
            self._paces_s.append(time.perf_counter() - begun_s)

    def sentence(self) -> str:
        now = psutil.cpu_times()
        steal_s = getattr(now, "steal", 0.0) - getattr(self._times, "steal", 0.0)
        share = steal_s / max(1e-9, sum(now) - sum(self._times))
        slower = _slower(self._paces_s)
        return (
            f"Meanwhile {share:.1%} of the processors' time was stolen, and other programs used "
            f"{self._load.cores_of_others():.2f} cores. Of the times of a fixed computation on an idle machine, "
            f"{slower[1.1]:.0%} were more than 1.1 times its best, {slower[1.3]:.0%} more than 1.3 times, and "
            f"{slower[1.5]:.0%} more than 1.5 times."
        )


def _slower(paces_s: Sequence[float]) -> dict[float, float]:
    """How many times longer than at its best a computation took → the share of its times that were longer than that.
    Its best is the least but for one of twenty."""
    best_s = float(np.quantile(paces_s, 0.05))
    return {times: float(np.mean(np.asarray(paces_s) > times * best_s)) for times in (1.1, 1.3, 1.5)}
