"""Data sets as tensors in memory: CIFAR-10 binary batches and idx files (MNIST and its relatives).

Pixels stay bytes until a batch is made; a network sees (pixel/255 - mean) / std, channel by channel.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Description:
    """What a program that classifies a picture must know about a data set."""

    labels: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: int
    flips: bool

    def normalize(self, images: Tensor) -> Tensor:
        """Byte images [n, c, h, w] to the network's input."""
        mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (self.mean, self.std))
        return (images.float() / 255 - mean) / std


DATASETS = {
    "cifar10": Description(
        ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        (0.4914, 0.4822, 0.4465),
        (0.2470, 0.2435, 0.2616),
        size=32,
        flips=True,
    ),
    "mnist": Description(tuple("0123456789"), (0.1307,), (0.3081,), size=28, flips=False),
    "pneumoniamnist": Description(("normal", "pneumonia"), (0.5719,), (0.1684,), size=28, flips=False),
}


@dataclass(frozen=True)
class Split:
    """Byte images [n, c, h, w] with their class indices."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


def load(name: str, folder: Path, split: str) -> Split:
    """The `train` or `test` part of a data set, from files as their authors publish them (.gz and .xz allowed)."""
    if name == "cifar10":
        stems = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
        parts = [_cifar_batch(folder, f"{stem}.bin") for stem in stems]
        return Split(*(torch.cat(tensors) for tensors in zip(*parts)))
    stem = "t10k" if name == "mnist" and split == "test" else split
    images = _idx(folder, f"{stem}-images-idx3-ubyte").unsqueeze(1)
    return Split(images, _idx(folder, f"{stem}-labels-idx1-ubyte").long())


def batches(data: Split, size: int, generator: torch.Generator, share: tuple[int, int] = (0, 1)) -> Iterator[Tensor]:
    """Index tensors of one shuffled epoch; of each batch only the part of process `rank` out of `n`.

    The last, incomplete batch is left out: its few images come back in another epoch.
    """
    rank, n = share
    order = torch.randperm(len(data), generator=generator)
    for batch in order[: len(order) - len(order) % size].split(size):
        yield batch[rank::n]


def augment(images: Tensor, padding: int, flips: bool, generator: torch.Generator) -> Tensor:
    """Shifts each image by up to `padding` pixels (zeros come in), and mirrors half of them where that makes sense."""
    n, _, height, width = images.shape
    padded = F.pad(images, (padding,) * 4)
    top, left = torch.randint(0, 2 * padding + 1, (2, n, 1), generator=generator)
    rows = top + torch.arange(height)
    columns = left + torch.arange(width)
    if flips:
        mirrored = torch.rand(n, 1, generator=generator) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    # The advanced indices around the channel slice put the channels last, which is the layout the network wants.
    cropped = padded[torch.arange(n).view(n, 1, 1), :, rows.unsqueeze(2), columns.unsqueeze(1)]
    return cropped.permute(0, 3, 1, 2)


def _cifar_batch(folder: Path, name: str) -> tuple[Tensor, Tensor]:
    records = np.frombuffer(_read(folder, name), np.uint8).reshape(-1, 3073)
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy())
    return images, torch.from_numpy(records[:, 0].astype(np.int64))


def _idx(folder: Path, name: str) -> Tensor:
    data = _read(folder, name)
    n_dimensions = data[3]
    shape = np.frombuffer(data, ">u4", n_dimensions, offset=4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * n_dimensions)
    return torch.from_numpy(values.reshape(tuple(int(n) for n in shape)).copy())


def _read(folder: Path, name: str) -> bytes:
    openers = {"": open, ".gz": gzip.open, ".xz": lzma.open}
    for suffix, opener in openers.items():
        path = folder / (name + suffix)
        if path.exists():
            with opener(path, "rb") as file:
                return file.read()
    raise FileNotFoundError(f"{folder} has no {name}, {name}.gz or {name}.xz")
