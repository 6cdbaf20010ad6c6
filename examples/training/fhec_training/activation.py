"""Polynomial activations, and what keeps their inputs in range while a network learns (paper §3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import torch
from torch import Tensor, nn

from fhec_training.fit import fit_relu

WARM_UP = (1 / 100, 1 / 50, 1 / 10, 1 / 5)
"""Factors of zeta in the first epochs; from then on the factor is one."""


class PolyActivation(nn.Module):
    """ReLU fitted by a polynomial on [-c, c] whose coefficients are integers over 2**bits.

    In training the module notes how far its input leaves [-margin, margin] (the norm that `clip_range_penalty`
    averages) and only then clips it to [-clip, clip]; both are c unless they are set, and an infinite `clip` clips
    nothing. In evaluation it is the polynomial and nothing else, which is what is exported and what runs encrypted.
    """

    def __init__(self, degree: int = 2, c: float = 2.0, bits: int = 10) -> None:
        super().__init__()
        self.c, self.bits = float(c), bits
        self.integers = fit_relu(degree, self.c, bits)
        self.coefficients = tuple(a / (1 << bits) for a in self.integers)
        self.margin = self.clip = self.c
        self.excesses: list[Tensor] = []

    def forward(self, z: Tensor) -> Tensor:
        if not self.training:
            return horner(self.coefficients, z)
        # The norm has gradient zero where nothing leaves the range.
        self.excesses.append(torch.linalg.vector_norm(z - z.clamp(-self.margin, self.margin)))
        return horner(self.coefficients, z.clamp(-self.clip, self.clip) if isfinite(self.clip) else z)

    def extra_repr(self) -> str:
        return f"integers={self.integers}, c={self.c:g}, bits={self.bits}"


def horner(coefficients: Sequence[float], x: Tensor) -> Tensor:
    """sum_k coefficients[k] * x**k, for one coefficient or more."""
    if len(coefficients) == 1:
        return torch.full_like(x, coefficients[0])
    value = x * coefficients[-1] + coefficients[-2]
    for a in coefficients[-3::-1]:
        value = value * x + a
    return value


def convert(model: nn.Module, degree: int = 2, c: float = 2.0, bits: int = 10) -> nn.Module:
    """Replaces every `nn.ReLU` inside `model` by a `PolyActivation`, in place, and returns the model.

    Calls of `torch.nn.functional.relu` are not modules and cannot be found: a model without a single
    `nn.ReLU` is refused, because nothing would have happened.
    """
    if isinstance(model, nn.ReLU):
        return PolyActivation(degree, c, bits)
    sites = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.ReLU)
    ]
    if not sites:
        raise ValueError("the model has no nn.ReLU module to replace; functional ReLU calls must become modules first")
    for parent, name in sites:
        setattr(parent, name, PolyActivation(degree, c, bits))
    return model


def activations(model: nn.Module) -> dict[str, PolyActivation]:
    """The polynomial activations of a model by module name, in order of definition."""
    return {name: module for name, module in model.named_modules() if isinstance(module, PolyActivation)}


def clip_range_penalty(model: nn.Module) -> Tensor:
    """Mean over all activations of the norm of what leaves the range, ||z - clip(z)||_2, in the forward pass just made in training mode.

    Must be called once after each such pass: it takes what the activations noted, and leaves them empty.
    """
    excesses: list[Tensor] = []
    for module in activations(model).values():
        excesses.extend(module.excesses)
        module.excesses.clear()
    if not excesses:
        return torch.zeros(())
    return torch.stack(excesses).mean()


def warm_up(epoch: int) -> float:
    """Factor of zeta in an epoch, counted from zero."""
    return WARM_UP[epoch] if epoch < len(WARM_UP) else 1.0


@torch.no_grad()
def input_ranges(model: nn.Module, images: Tensor) -> dict[str, tuple[float, float]]:
    """Smallest and largest input of every polynomial activation over a batch, in evaluation mode."""
    ranges: dict[str, tuple[float, float]] = {}

    def note(name: str):
        def hook(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            low, high = inputs[0].min().item(), inputs[0].max().item()
            before = ranges.get(name, (low, high))
            ranges[name] = (min(low, before[0]), max(high, before[1]))

        return hook

    handles = [module.register_forward_pre_hook(note(name)) for name, module in activations(model).items()]
    was_training = model.training
    try:
        model.eval()
        model(images)
    finally:
        model.train(was_training)
        for handle in handles:
            handle.remove()
    return ranges
