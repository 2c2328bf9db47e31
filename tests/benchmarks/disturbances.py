"""What disturbs a machine while something is measured on it."""

import time

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
        stolen_s = getattr(now, "steal", 0.0) - getattr(self._times, "steal", 0.0)
        # The best is the least but for one of twenty.
        slower = np.asarray(self._paces_s) / np.quantile(self._paces_s, 0.05)
        shares = ", ".join(f"{np.mean(slower > times):.0%} more than {times} times" for times in (1.1, 1.3, 1.5))
        return (
            f"Meanwhile {stolen_s / (sum(now) - sum(self._times)):.1%} of the processors' time was stolen, and other "
            f"programs used {self._load.cores_of_others():.2f} cores. Of the times of a fixed computation on an idle "
            f"machine, these were longer than its best: {shares}."
        )
