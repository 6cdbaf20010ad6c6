"""How far a run is, and the learning rate there.

A run has a budget of epochs, of minutes, or both; its progress is the larger of the two used fractions. Under a
budget of minutes the learning rate reaches zero on time however fast the machine is at the moment, so a run on a
busy machine still ends with a fully annealed network.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import cos, pi


@dataclass
class Clock:
    """Progress of a run; `seconds_before` were used by earlier processes of the same run."""

    epochs: float
    minutes: float | None = None
    seconds_before: float = 0.0

    def __post_init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self._start

    def progress(self, epoch: float) -> float:
        """In [0, 1]; `epoch` is fractional inside an epoch."""
        used = epoch / self.epochs
        if self.minutes is not None:
            used = max(used, self.seconds() / (60 * self.minutes))
        return min(used, 1.0)


def one_cycle(progress: float, peak: float, rise: float = 0.2, floor: float = 0.04) -> float:
    """Learning rate: linear from `floor * peak` to `peak` in the first `rise` of the run, then a cosine to zero."""
    if progress < rise:
        return peak * (floor + (1 - floor) * progress / rise)
    return peak * (1 + cos(pi * (progress - rise) / (1 - rise))) / 2
