"""VGG-16 for 32x32 images: thirteen convolutions, five average pools, three dense layers."""

from __future__ import annotations

from torch import nn

_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def vgg16(in_channels: int = 3, n_classes: int = 10, width: float = 1.0) -> nn.Module:
    layers: list[nn.Module] = []
    channels = in_channels
    for base, n_convolutions in _STAGES:
        out = max(1, round(width * base))
        for _ in range(n_convolutions):
            layers += [nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
            channels = out
        layers.append(nn.AvgPool2d(2))
    layers.append(nn.Flatten())
    for _ in range(2):
        layers += [nn.Linear(channels, channels), nn.ReLU()]
    layers.append(nn.Linear(channels, n_classes))
    return nn.Sequential(*layers)
