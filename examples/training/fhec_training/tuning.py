"""`fine_tune`: some training after `convert`, so that a network learns to live with its polynomials (paper §3).

Three phases, each a part of the run: the polynomials are blended in gradually; inputs of activations are clipped to
their range; then the clipping is loosened, so that the weights settle on the network that will run encrypted, where
nothing is clipped. All the while a penalty pulls inputs into range. At the end the statistics of batch normalizations,
which lag behind as running means do, are taken anew.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, isfinite

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fhec_training.activation import PolyActivation, activations, penalty
from fhec_training.modes import device_of, evaluating
from fhec_training.noise import Noise
from fhec_training.ranges import inputs_of
from fhec_training.schedule import one_cycle

GRADIENT_NORM = 2.0
"""Longer gradients are shortened to this: a quadratic network can take one bad step too many."""

SETTLING_BATCHES = 50
"""Batches over which the statistics of batch normalizations are taken in the end."""


class TrainingDiverged(RuntimeError):
    """The loss is not a number any more."""


@dataclass(frozen=True)
class Epoch:
    """Means over one epoch of training, or the part of one at the end of a run."""

    epoch: int
    loss: float
    penalty: float
    accuracy: float
    seconds: float


def fine_tune(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    epochs: float = 1.0,
    *,
    lr: float = 0.02,
    weight_decay: float = 5e-4,
    zeta: float = 0.01,
    margin: float = 0.9,
    gradual: float = 0.3,
    clip_until: float = 0.6,
    late_clip: float = 2.0,
    noise: Noise | float | None = None,
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    report: Callable[[Epoch], None] | None = None,
) -> list[Epoch]:
    """Trains a converted network in place and leaves it in evaluation mode; returns what happened, epoch by epoch.

    `loader` gives (inputs, labels), can be iterated again and has a length, as a DataLoader does. `lr` is the peak of
    a one-cycle schedule. `zeta` weighs the penalty on inputs beyond `margin` times each range. The polynomials replace
    the functions they stand for little by little in the first part `gradual` of the run; inputs are clipped to the range
    until the part `clip_until`, and to `late_clip` times the range (`math.inf`: not at all) after it. `noise` is a number of
    bits, or a `Noise`. `report` is called after each epoch; without it a line is printed on standard error.
    """
    found = list(activations(model).values())
    if not found:
        raise ValueError("the model has no polynomial activation: convert it first")
    for name, value in (("epochs", epochs), ("lr", lr)):
        if not 0 < value < float("inf"):
            raise ValueError(f"{name} is a positive number, not {value}")
    if isinstance(noise, (int, float)):
        noise = Noise.of_bits(noise)
    noise = noise or Noise()
    n_steps = ceil(epochs * len(loader))  # type: ignore[arg-type]
    phases = _Phases(lr, margin, gradual, clip_until, late_clip)
    optimizer = torch.optim.SGD(parameter_groups(model, weight_decay), lr=lr, momentum=0.9, nesterov=True)
    history: list[Epoch] = []
    step = 0
    model.train()
    penalty(model)  # Whatever a pass before this one left.
    try:
        with noise.added_to(model):
            while step < n_steps:
                sums, start, first = torch.zeros(3), time.monotonic(), step
                for inputs, labels in loader:
                    if step == n_steps:
                        break
                    phases.begin(step / n_steps, found, optimizer)
                    sums += torch.tensor(_step(model, inputs, labels, optimizer, noise, loss, zeta, f"step {step + 1} of {n_steps}"))
                    step += 1
                if step == first:
                    raise ValueError("the loader gave no batches: it must be iterable once for each epoch")
                history.append(Epoch(len(history) + 1, *(sums / (step - first)).tolist(), time.monotonic() - start))
                (report or _print)(history[-1])
        settle_batch_norms(model, loader)
    finally:
        for activation in found:
            activation.margin = activation.clip = activation.c
            activation.blend = 1.0
            activation.excesses.clear()
        model.eval()
    return history


@dataclass(frozen=True)
class _Phases:
    """What changes with the progress of a run."""

    lr: float
    margin: float
    gradual: float
    clip_until: float
    late_clip: float

    def begin(self, progress: float, found: list[PolyActivation], optimizer: torch.optim.Optimizer) -> None:
        """Prepares the step at `progress`, in [0, 1)."""
        for activation in found:
            activation.margin = self.margin * activation.c
            activation.clip = activation.c * (1.0 if progress < self.clip_until else self.late_clip)
            activation.blend = min(1.0, progress / self.gradual) if self.gradual > 0 else 1.0
        for group in optimizer.param_groups:
            group["lr"] = one_cycle(progress, self.lr)


def _step(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    optimizer: torch.optim.Optimizer,
    noise: Noise,
    loss: Callable[[Tensor, Tensor], Tensor],
    zeta: float,
    where: str,
) -> tuple[float, float, float]:
    """One step of the optimizer; returns loss, penalty and accuracy of the batch."""
    device = device_of(model)
    inputs, labels = inputs.to(device), labels.to(device)
    scores = model(inputs)
    value, excess = loss(noise.on_scores(scores), labels), penalty(model)
    if not isfinite(value.item() + excess.item()):
        raise TrainingDiverged(f"the loss is {value.item()} at {where}: lower lr, raise zeta, or bring late_clip nearer to 1")
    optimizer.zero_grad(set_to_none=True)
    (value + zeta * excess).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
    optimizer.step()
    right = (scores.argmax(1) == labels).float().mean().item() if labels.ndim == 1 else float("nan")
    return value.item(), excess.item(), right


@torch.no_grad()
def settle_batch_norms(model: nn.Module, loader: Iterable[tuple[Tensor, Tensor]], n_batches: int = SETTLING_BATCHES) -> None:
    """Takes the running statistics of all batch normalizations anew, as plain means over some batches.

    Everything else runs as in evaluation but for the clipping: one wild image must not spoil a mean.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    device = device_of(model)
    try:
        with evaluating(model):
            for norm in norms:
                norm.reset_running_stats()
                norm.momentum = None  # A plain mean.
                norm.train()
            for activation in activations(model).values():
                activation.train()
            for inputs in inputs_of(loader, n_batches):
                model(inputs.to(device))
                penalty(model)
    finally:
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum


@torch.no_grad()
def accuracy(model: nn.Module, loader: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Fraction of right classes as the network will run encrypted: in evaluation mode, nothing clipped."""
    device = device_of(model)
    with evaluating(model):
        right = [model(inputs.to(device)).argmax(1).cpu() == labels for inputs, labels in loader]
    return torch.cat(right).float().mean().item()


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Weights decay; biases and batch-norm factors do not."""
    weights = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    return [{"params": weights, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def _print(epoch: Epoch) -> None:
    print(
        f"epoch {epoch.epoch}: loss {epoch.loss:.4f}, penalty {epoch.penalty:.2f}, "
        f"accuracy {epoch.accuracy:.2%} while training, {epoch.seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )
