"""What the inputs of activations look like on data: extremes, and how far most of them reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from fhec_training import torch_functions
from fhec_training.activation import PolyActivation, activations
from fhec_training.modes import device_of, evaluating

Data = Tensor | Iterable[Tensor | tuple[Tensor, Tensor]]
"""One batch of inputs, or an iterable of batches, with or without labels."""

N_BATCHES = 8
"""Batches that a measurement takes of an iterable."""


def inputs_of(data: Data, n_batches: int | None = N_BATCHES) -> Iterator[Tensor]:
    """The inputs of the first batches of `data`."""
    if isinstance(data, Tensor):
        yield data
        return
    for index, batch in enumerate(data):
        if index == n_batches:
            return
        yield batch if isinstance(batch, Tensor) else batch[0]


@torch.no_grad()
def input_ranges(model: nn.Module, data: Data) -> dict[str, tuple[float, float]]:
    """Smallest and largest input of every polynomial activation, in evaluation mode."""
    ranges: dict[str, tuple[float, float]] = {}

    def note(name: str, _activation: PolyActivation, z: Tensor) -> None:
        low, high = z.min().item(), z.max().item()
        before = ranges.get(name, (low, high))
        ranges[name] = (min(low, before[0]), max(high, before[1]))

    with _watched(model, note):
        for images in inputs_of(data):
            model(images.to(device_of(model)))
    return ranges


@torch.no_grad()
def original_reach(model: nn.Module, data: Data, quantile: float = 1.0) -> dict[str, float]:
    """The absolute value that this part of the inputs of every activation stays below, in the network before its conversion.

    Of several batches (and of several uses of one module) the largest is taken. Nothing in the network changes.
    """
    reach: dict[str, float] = {}

    def note(name: str, _activation: PolyActivation, z: Tensor) -> None:
        sizes = z.abs().flatten()
        rank = max(1, round(quantile * sizes.numel()))
        reach[name] = max(reach.get(name, 0.0), sizes.kthvalue(rank).values.item())

    with _watched(model, note), _as_before(model):
        for images in inputs_of(data):
            model(images.to(device_of(model)))
    return reach


@contextmanager
def _watched(model: nn.Module, note: Callable[[str, PolyActivation, Tensor], None]) -> Iterator[None]:
    """Calls `note` with every input of every activation, the model being in evaluation mode."""

    def hook(name: str):
        return lambda module, inputs: note(name, module, inputs[0])

    handles = [module.register_forward_pre_hook(hook(name)) for name, module in activations(model).items()]
    try:
        with evaluating(model):
            yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _as_before(model: nn.Module) -> Iterator[None]:
    """Lets every activation compute the function that its polynomial stands for."""
    replace = lambda module, inputs, _output: torch_functions.evaluate(module.function, inputs[0])  # noqa: E731
    handles = [module.register_forward_hook(replace) for module in activations(model).values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
