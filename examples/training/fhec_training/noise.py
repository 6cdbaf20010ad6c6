"""Training for the noise of encryption: what a build will add to the values of a network is added while it learns.

A network that keeps its predictions under more noise can be built with smaller scales (`fhec build --precision`), which
leaves more room below the security bound. Noise is Gaussian and enters where the compiled circuit rounds: at the inputs of
the activations, and at the scores. A circuit scales the channels before an activation to a common range, and all numbers of a
ciphertext have noise of the same size: so the deviation in a channel is a part of the range of that channel. How large a part
is either a number of bits, or what the report of a build (`fhec build --report report.json`) predicts for the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import log2, sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fhec_training.activation import PolyActivation, activations, channel_ranges
from fhec_training.modes import device_of, evaluating

PROBE = 1e-3
"""Deviation of the noise that measures how much of it reaches the scores, as a part of the range."""


@dataclass(frozen=True)
class Noise:
    """Deviations of the noise at the input of each activation, as a part of the range of each channel, and at the scores."""

    inputs: dict[str, float] = field(default_factory=dict)
    scores: float = 0.0
    bits: float | None = None
    """If set, deviations are this many bits below the range of each channel and below the largest score of a batch."""

    @classmethod
    def of_bits(cls, bits: float) -> Noise:
        if not bits > 0:
            raise ValueError(f"noise is a positive number of bits below the values, not {bits}")
        return cls(bits=float(bits))

    @classmethod
    def of_report(cls, report: str | Path | dict[str, Any], model: nn.Module, images: Tensor) -> Noise:
        """The noise that a build report predicts for this network.

        The report tells the variance of the scores by the layer where it arises. The layers up to each activation are
        taken together; the deviation at its input is the one that makes just that variance in the scores, by the
        network's own response to a little noise there on `images`.
        """
        if not isinstance(report, dict):
            report = json.loads(Path(report).read_text())
        try:
            variance = float(report["predicted_error"]) ** 2
            layers = [(int(layer["ciphertext_products"]) > 0, float(layer["error_share"])) for layer in report["layers"]]
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a report of `fhec build --report`: {error!r}") from error
        uses = _uses(model, images)
        groups = _groups(layers, len(uses))
        inputs: dict[str, float] = {}
        for name in dict.fromkeys(uses):
            shares = [share for use, share in zip(uses, groups) if use == name]
            # A module that is used several times has one deviation, and together its uses make the sum of their shares.
            inputs[name] = sqrt(variance * sum(shares)) / _gain(model, name, images)
        return cls(inputs, sqrt(variance * groups[-1]))

    @contextmanager
    def added_to(self, model: nn.Module) -> Iterator[None]:
        """While this is open the activations of `model` add their noise in training mode."""
        found = activations(model)
        unknown = set(self.inputs) - set(found)
        if unknown:
            raise ValueError(f"the noise belongs to another network: it has no activation {', '.join(sorted(unknown))}")
        for name, activation in found.items():
            deviation = self.inputs.get(name, 0.0) if self.bits is None else 2.0**-self.bits
            # A tensor: a compiled network takes it as an input, and is not compiled again for another number.
            activation.noise = torch.tensor(deviation, device=device_of(model)) if deviation else None
        try:
            yield
        finally:
            for activation in found.values():
                activation.noise = None

    def scaled(self, factor: float) -> Noise:
        """The same noise with all deviations multiplied by a positive factor."""
        if self.bits is not None:
            return Noise(bits=self.bits - log2(factor))
        return Noise({name: factor * deviation for name, deviation in self.inputs.items()}, factor * self.scores)

    def on_scores(self, scores: Tensor) -> Tensor:
        """The scores with their noise; gradients pass unchanged."""
        deviation = self.scores if self.bits is None else scores.detach().abs().max().item() * 2.0**-self.bits
        return scores + deviation * torch.randn_like(scores) if deviation else scores


def _groups(layers: list[tuple[bool, float]], n_uses: int) -> list[float]:
    """Shares of variance before each use of an activation, and after the last.

    `layers` tells of each whether it multiplies ciphertexts, which only activations do, all equally often.
    """
    n_products = sum(multiplies for multiplies, _ in layers)
    if n_uses == 0 or n_products == 0 or n_products % n_uses:
        raise ValueError(
            f"the report has {n_products} layers that multiply ciphertexts, the network uses activations {n_uses} times: "
            "they do not belong together"
        )
    per_use = n_products // n_uses
    groups, n_seen = [0.0] * (n_uses + 1), 0
    for multiplies, share in layers:
        # What arises from the first product of an activation on counts for the next one.
        n_seen += multiplies
        groups[-(-n_seen // per_use)] += share
    return groups


@torch.no_grad()
def _uses(model: nn.Module, images: Tensor) -> list[str]:
    """Names of the activations in the order in which a pass uses them."""
    used: list[str] = []
    handles = [module.register_forward_pre_hook(lambda *_, name=name: used.append(name)) for name, module in activations(model).items()]
    try:
        with evaluating(model):
            model(images[:1].to(device_of(model)))
    finally:
        for handle in handles:
            handle.remove()
    return used


@torch.no_grad()
def _gain(model: nn.Module, name: str, images: Tensor) -> float:
    """Deviation of the scores per deviation of noise at the input of one activation, as a part of the range of each channel."""
    activation = activations(model)[name]
    generator = torch.Generator().manual_seed(0)
    images = images.to(device_of(model))

    def disturb(_module: PolyActivation, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        z = inputs[0]
        normal = torch.randn(z.shape, generator=generator).to(z)
        return (z + PROBE * channel_ranges(activation.coefficients, z) * normal,)

    with evaluating(model):
        before = model(images)
        handle = activation.register_forward_pre_hook(disturb)
        try:
            difference = (model(images) - before).double()
        finally:
            handle.remove()
    gain = difference.square().mean().sqrt().item() / PROBE
    if not gain > 0:
        raise ValueError(f"noise at {name} does not reach the scores: the layer is dead, or the images are")
    return gain
