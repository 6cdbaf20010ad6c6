"""Polynomial activations, and what keeps their inputs in range while a network learns (paper §3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import torch
from torch import Tensor, nn

from fhec_training import torch_functions
from fhec_training.functions import Function
from fhec_training.integer_fit import fit

WARM_UP = (1 / 100, 1 / 50, 1 / 10, 1 / 5)
"""Factors of zeta in the first epochs; from then on the factor is one."""


PAPER_RANGE = 16 / 3
"""Up to here the paper's bounds on the coefficients leave the fit of ReLU as it is; beyond, they would spoil it."""


class PolyActivation(nn.Module):
    """ReLU, or another function, fitted by a polynomial on [-c, c] whose coefficients are integers over 2**bits.

    In training the module notes how far its input leaves [-margin, margin] (the norm that `penalty` averages) and only
    then clips it to [-clip, clip]; both are c unless they are set, and an infinite `clip` clips nothing. Two more things
    happen in training only, if they are asked for: Gaussian noise is added to what the polynomial sees, of deviation `noise`
    times the range of each channel, and the result is `blend` parts of the polynomial and 1 - `blend` parts of the function
    it stands for.
    In evaluation it is the polynomial and nothing else, which is what is exported and what runs encrypted.
    """

    def __init__(self, degree: int = 2, c: float = 2.0, bits: int = 10, function: str | Function = "relu") -> None:
        super().__init__()
        self.function = function if isinstance(function, Function) else Function(function)
        self.degree, self.bits = degree, bits
        self.noise: Tensor | None = None
        self.blend = 1.0
        self.excesses: list[Tensor] = []
        self.refit(c)

    def refit(self, c: float) -> None:
        """Fits the same function on another range."""
        self.c = float(c)
        self.integers = fit(self.function, self.degree, self.c, self.bits, wide=self.c > PAPER_RANGE)
        n_used = max((j + 1 for j, a in enumerate(self.integers) if a), default=1)
        self.coefficients = tuple(a / (1 << self.bits) for a in self.integers[:n_used])
        self.margin = self.clip = self.c

    def forward(self, z: Tensor) -> Tensor:
        if not self.training:
            return horner(self.coefficients, z)
        # The norm has gradient zero where nothing leaves the range.
        self.excesses.append(torch.linalg.vector_norm(z - z.clamp(-self.margin, self.margin)))
        seen = z.clamp(-self.clip, self.clip) if isfinite(self.clip) else z
        if self.noise is not None:
            seen = seen + self.noise * channel_ranges(self.coefficients, seen) * draw(seen)
        value = horner(self.coefficients, seen)
        if self.blend < 1.0:
            value = self.blend * value + (1.0 - self.blend) * torch_functions.evaluate(self.function, z)
        return value

    def extra_repr(self) -> str:
        return f"{self.function}, integers={self.integers}, c={self.c:g}, bits={self.bits}"


def channel_ranges(coefficients: Sequence[float], z: Tensor) -> Tensor:
    """Largest size that each channel of a batch has in a compiled circuit, where noise is the same part of it everywhere.

    A quadratic polynomial is compiled to the square of z + shift, and channels are scaled to a common size before it.
    """
    shift = coefficients[1] / (2 * coefficients[2]) if len(coefficients) == 3 else 0.0
    return (z.detach() + shift).abs().amax([d for d in range(z.ndim) if d != 1], keepdim=True)


def draw(like: Tensor) -> Tensor:
    """Gaussian numbers in the shape of a batch: one pattern for all its images, with a random sign for each.

    The numbers of two images are uncorrelated, and drawing takes a fraction of the time of the network, which one draw for
    every number would more than double.
    """
    signs = torch.randint(0, 2, (like.shape[0],) + (1,) * (like.ndim - 1), device=like.device)
    return torch.randn_like(like[:1]) * (2 * signs - 1).to(like.dtype)


def horner(coefficients: Sequence[float], x: Tensor) -> Tensor:
    """sum_k coefficients[k] * x**k, for one coefficient or more."""
    if len(coefficients) == 1:
        return torch.full_like(x, coefficients[0])
    value = x * coefficients[-1] + coefficients[-2]
    for a in coefficients[-3::-1]:
        value = value * x + a
    return value


def activations(model: nn.Module) -> dict[str, PolyActivation]:
    """The polynomial activations of a model by module name, in order of definition."""
    return {name: module for name, module in model.named_modules() if isinstance(module, PolyActivation)}


def penalty(model: nn.Module) -> Tensor:
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
