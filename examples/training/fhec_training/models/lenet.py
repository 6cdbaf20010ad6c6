"""A LeNet for 28x28 images: two strided convolutions and two dense layers, three activations."""

from __future__ import annotations

from torch import nn


def lenet(in_channels: int = 1, n_classes: int = 10, width: float = 1.0) -> nn.Module:
    """Strides take the place of pooling, so there are seven multiplications on the longest path at degree 2."""
    first, second, hidden = (max(1, round(width * n)) for n in (8, 16, 64))
    return nn.Sequential(
        nn.Conv2d(in_channels, first, 5, stride=2, padding=2, bias=False),
        nn.BatchNorm2d(first),
        nn.ReLU(),
        nn.Conv2d(first, second, 5, stride=2, padding=2, bias=False),
        nn.BatchNorm2d(second),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(second * 7 * 7, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, n_classes),
    )
