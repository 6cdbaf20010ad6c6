"""The state of a network that is not its weights: modes, put back as they were, and the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode while this is open; afterwards every module has the mode that it had."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes.items():
            module.training = was_training


def device_of(model: nn.Module) -> torch.device:
    """Where the parameters are; networks without any run where their inputs are, which is taken to be the CPU."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
