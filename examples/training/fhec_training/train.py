"""Trains a network: `python -m fhec_training train --model resnet20 --data cifar10 --data-dir DIR --out RUN`.

A run lives in its folder: `checkpoint.pt` (after every epoch; the same command goes on from there), `log.csv`,
`accuracy.png` and `ranges.png`.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import inf
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from fhec_training import checkpoint, data, report
from fhec_training.activation import activations, penalty as range_penalty, warm_up
from fhec_training.checkpoint import Recipe
from fhec_training.evaluate import accuracy
from fhec_training.models import MODELS
from fhec_training.noise import Noise
from fhec_training.parallel import Group
from fhec_training.ranges import input_ranges
from fhec_training.schedule import Clock, one_cycle
from fhec_training.tuning import GRADIENT_NORM, parameter_groups

NOISE_IMAGES = 64
"""Training images on which the effect of noise on the scores is measured before every epoch, for `--noise-report`."""

LEAST_NOISE = 0.1
"""Part of the noise with which a run begins, if it rises."""

EPOCH_TEST_IMAGES = 2000
"""Test images measured after every epoch but the last, which takes them all."""


class Run:
    """One training run: network, optimizer, data and position."""

    def __init__(self, options: argparse.Namespace, group: Group) -> None:
        self.options, self.group = options, group
        self.description = data.DATASETS[options.data]
        self.train_data = data.load(options.data, options.data_dir, "train")
        self.test_data = data.load(options.data, options.data_dir, "test")
        self.recipe = Recipe(
            options.model,
            options.data,
            self.train_data.images.shape[1],
            len(self.description.labels),
            options.width,
            options.activation,
            options.degree,
            options.c,
            options.bits,
        )
        self.class_weights = _class_weights(self.train_data) if options.balance else None
        self.path = options.out / "checkpoint.pt"
        torch.manual_seed(options.seed)
        self.network = self.recipe.network()
        if options.start is None:
            start_batch_norms(self.network, options.bn_start)
        else:
            checkpoint.start(self.network, options.start)
        self.forward = torch.compile(self.network) if options.compile else self.network
        self.optimizer = torch.optim.SGD(parameter_groups(self.network, options.weight_decay), momentum=0.9, nesterov=True)
        self.epoch, seconds = 0, 0.0
        if self.path.exists():
            seconds = self._resume()
        self.clock = Clock(options.epochs, options.minutes, seconds)
        self.agreed_progress = self.clock.progress(self.epoch)

    def _resume(self) -> float:
        recipe, network, state = checkpoint.load(self.path)
        if recipe != self.recipe:
            raise SystemExit(f"{self.path} belongs to another network: {recipe}")
        self.network.load_state_dict(network.state_dict())
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epoch"]
        return state["seconds"]

    def go(self) -> None:
        while self.agreed_progress < 1.0:
            self.train_epoch()

    def train_epoch(self) -> None:
        options = self.options
        generator = torch.Generator().manual_seed(1_000_003 * options.seed + self.epoch)
        jitter = torch.Generator().manual_seed(generator.initial_seed() * options.processes + self.group.rank)
        zeta = options.zeta * (warm_up(self.epoch) if options.warm_up else 1.0)
        n_steps = len(self.train_data) // options.batch_size
        sums = torch.zeros(3)
        n_done, shown = 0, time.monotonic()
        self.network.train()
        self.noise = self.noise_of_epoch()
        for step, indices in enumerate(data.batches(self.train_data, options.batch_size, generator, self.group.share)):
            if self.agreed_progress >= 1.0:
                break
            lr = one_cycle(self.agreed_progress, options.lr)
            with self.noise_now().added_to(self.network):
                sums += torch.tensor(self.step(indices, jitter, lr, zeta, self.epoch + (step + 1) / n_steps))
            n_done += 1
            if self.group.is_first and time.monotonic() - shown > 10:
                shown = time.monotonic()
                loss, penalty, right = (sums / n_done).tolist()
                print(
                    f"epoch {self.epoch + 1} step {step + 1}/{n_steps} done {self.agreed_progress:.1%} "
                    f"lr {lr:.4f} loss {loss:.4f} penalty {penalty:.1f} accuracy {right:.2%}",
                    file=sys.stderr,
                    flush=True,
                )
        self.group.average_statistics(self.network)
        self.epoch += 1
        if self.group.is_first:
            self.finish_epoch(zeta, lr, *(sums / max(1, n_done)).tolist())

    def noise_of_epoch(self) -> Noise:
        """The noise to train for; what a report predicts is carried over to the weights as they are now."""
        if self.options.noise_bits is not None:
            return Noise.of_bits(self.options.noise_bits)
        if self.options.noise_report is not None:
            images = self.description.normalize(self.train_data.images[:NOISE_IMAGES])
            return Noise.of_report(self.options.noise_report, self.network, images)
        return Noise()

    def noise_now(self) -> Noise:
        """The noise of a step: less in the first part of the run, `--noise-rise`."""
        if self.agreed_progress >= self.options.noise_rise:
            return self.noise
        return self.noise.scaled(max(self.agreed_progress / self.options.noise_rise, LEAST_NOISE))

    def step(self, indices: torch.Tensor, jitter: torch.Generator, lr: float, zeta: float, epoch: float) -> list[float]:
        """One optimizer step; returns loss, penalty and accuracy of the batch over all processes."""
        options = self.options
        clip = options.c if self.agreed_progress < options.clip_until else options.late_clip
        for activation in activations(self.network).values():
            activation.margin, activation.clip = options.margin * options.c, clip
        images = data.augment(self.train_data.images[indices], options.padding, self.description.flips, jitter)
        inputs = self.description.normalize(images)
        if self.agreed_progress < options.small_until:
            inputs = F.interpolate(inputs, size=options.small_size, mode="bilinear", antialias=True)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
        labels = self.train_data.labels[indices]
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            logits = self.forward(inputs)
        loss = F.cross_entropy(self.noise.on_scores(logits.float()), labels, weight=self.class_weights)
        penalty = range_penalty(self.network)
        self.optimizer.zero_grad(set_to_none=True)
        (loss + zeta * penalty).backward()
        right = (logits.argmax(1) == labels).float().mean()
        # The clocks of the processes differ by a hair; the mean is what all of them act on.
        mine = (loss.item(), penalty.item(), right.item(), self.clock.progress(epoch))
        *means, self.agreed_progress = self.group.average(self.network, mine)
        if epoch >= options.epochs:
            self.agreed_progress = 1.0
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), GRADIENT_NORM)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = lr
        self.optimizer.step()
        return means

    def finish_epoch(self, zeta: float, lr: float, loss: float, penalty: float, train_accuracy: float) -> None:
        """Checkpoint first, then the measurements."""
        state = {"optimizer": self.optimizer.state_dict(), "epoch": self.epoch, "seconds": self.clock.seconds()}
        checkpoint.save(self.path, self.recipe, self.network, state)
        n_measured = len(self.test_data) if self.agreed_progress >= 1.0 else EPOCH_TEST_IMAGES
        measured = data.Split(self.test_data.images[:n_measured], self.test_data.labels[:n_measured])
        sample = self.description.normalize(self.test_data.images[:500])
        ranges = input_ranges(self.network, sample.contiguous(memory_format=torch.channels_last))
        row = {
            "epoch": self.epoch,
            "minutes": round(self.clock.seconds() / 60, 2),
            "progress": round(self.agreed_progress, 4),
            "lr": round(lr, 5),
            "zeta": zeta,
            "loss": round(loss, 4),
            "penalty": round(penalty, 2),
            "train_accuracy": round(train_accuracy, 4),
            "test_accuracy": round(accuracy(self.network, measured, self.description), 4),
            "ranges": " ".join(f"{name}:{low:.3f}:{high:.3f}" for name, (low, high) in ranges.items()),
        }
        report.append(self.options.out, row)
        report.plot(self.options.out, self.options.c)
        print({key: value for key, value in row.items() if key != "ranges"}, file=sys.stderr, flush=True)


def start_batch_norms(network: nn.Module, factor: float) -> None:
    """Sets the factors of all batch norms, which decide how wide the inputs of the activations are at first."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.constant_(module.weight, factor)


def _class_weights(split: data.Split) -> torch.Tensor:
    """Rare classes weigh more, so that each class contributes the same to the loss."""
    counts = torch.bincount(split.labels).float()
    return counts.mean() / counts


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("fhec-training train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", choices=MODELS, required=True)
    add("--data", choices=data.DATASETS, required=True)
    add("--data-dir", type=Path, required=True)
    add("--out", type=Path, required=True, help="folder of the run; goes on from its checkpoint if there is one")
    add("--start", type=Path, help="begin with the weights of this checkpoint or exported network, for example to train on with noise")
    add("--activation", choices=("poly", "relu"), default="poly", help="relu trains the twin to compare with")
    add("--degree", type=int, default=2)
    add("--c", type=float, default=2.0, help="activations are fitted and kept on [-c, c]")
    add("--bits", type=int, default=10, help="fractional bits of the activation's coefficients")
    add("--zeta", type=float, default=0.001, help="strength of the clip-range penalty")
    add("--no-warm-up", dest="warm_up", action="store_false", help="full zeta from the first epoch; fits a small --bn-start")
    add("--margin", type=float, default=1.0, help="part of [-c, c] beyond which the penalty counts")
    add("--clip-until", type=float, default=1.0, help="part of the run in which training clips to [-c, c]")
    add("--late-clip", type=float, default=inf, help="bound of the clipping after that; none unless given")
    add("--width", type=float, default=1.0, help="factor of all channel counts")
    add("--epochs", type=float, default=50)
    add("--minutes", type=float, help="end, annealed, after this time if the epochs are not done by then")
    add("--batch-size", type=int, default=128)
    add("--lr", type=float, default=0.2, help="peak of the one-cycle schedule")
    add("--weight-decay", type=float, default=5e-4)
    add("--bn-start", type=float, default=1.0, help="first value of the batch norms' factors; below 1 starts inside [-c, c]")
    add("--balance", action="store_true", help="weigh classes by the inverse of their frequency")
    add("--padding", type=int, default=4, help="largest random shift in pixels")
    add("--small-size", type=int, default=24, help="image size in the first part of the run")
    add("--small-until", type=float, default=0.0, help="part of the run on images of --small-size")
    noise = parser.add_mutually_exclusive_group()
    noise.add_argument("--noise-bits", type=float, help="train with Gaussian noise this many bits below the range of each channel")
    noise.add_argument("--noise-report", type=Path, help="train with the noise that this report of `fhec build --report` predicts")
    add("--noise-rise", type=float, default=0.0, help="part of the run in which the noise grows to what it shall be")
    add("--seed", type=int, default=0)
    add("--bf16", action="store_true", help="bfloat16 autocast; pays off only where the CPU has such instructions (avx512_bf16, amx_bf16)")
    add("--compile", action="store_true", help="merge element-wise operations first: takes a minute and a C++ compiler, then 1.4 times as fast")
    add("--processes", type=int, default=1, help="data-parallel processes of one thread each")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.processes > 1:
        torch.set_num_threads(1)
    group = Group(options.processes)
    Run(options, group).go()
    group.close()
