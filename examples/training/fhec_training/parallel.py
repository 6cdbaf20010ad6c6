"""Data parallelism over single-threaded processes on one machine.

Small convolutions share a batch badly between threads. Processes that meet once per step, to average their
gradients, use the same cores better, above all when something else is running on them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import nn

_RANK, _STORE = "FHEC_TRAINING_RANK", "FHEC_TRAINING_STORE"


class Group:
    """The processes of one run. Rank 0 is the process the user started; it starts the others."""

    def __init__(self, n_processes: int) -> None:
        self.n = n_processes
        self.rank = int(os.environ.get(_RANK, "0"))
        self._children: list[subprocess.Popen[bytes]] = []
        if self.n == 1:
            return
        if self.rank == 0:
            os.environ[_STORE] = tempfile.mktemp(prefix="fhec-training-")
            self._children = [
                subprocess.Popen([sys.executable, *sys.orig_argv[1:]], env={**os.environ, _RANK: str(rank)})
                for rank in range(1, self.n)
            ]
        dist.init_process_group("gloo", f"file://{os.environ[_STORE]}", rank=self.rank, world_size=self.n)

    @property
    def share(self) -> tuple[int, int]:
        return self.rank, self.n

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def average(self, model: nn.Module, numbers: Sequence[float]) -> list[float]:
        """Replaces every gradient by its mean over the processes; returns the means of `numbers`."""
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.cat([g.reshape(-1) for g in gradients] + [torch.tensor(list(numbers), dtype=torch.float32)])
        if self.n > 1:
            dist.all_reduce(flat)
            flat /= self.n
        *means, tail = flat.split([g.numel() for g in gradients] + [len(numbers)])
        for gradient, mean in zip(gradients, means):
            gradient.copy_(mean.view_as(gradient))
        return tail.tolist()

    def average_statistics(self, model: nn.Module) -> None:
        """Batch-norm statistics are gathered per process; this makes them the same everywhere."""
        if self.n == 1:
            return
        for buffer in model.buffers():
            if buffer.is_floating_point():
                dist.all_reduce(buffer)
                buffer /= self.n

    def close(self) -> None:
        if self.n > 1:
            dist.destroy_process_group()
        for child in self._children:
            child.wait()
