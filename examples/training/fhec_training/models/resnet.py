"""Residual networks for 32x32 images: the thin ones (20, 32 layers; 16/32/64 channels) and ResNet-18."""

from __future__ import annotations

from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, which is a 1x1 projection where the shape changes."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.act1 = nn.ReLU()
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.act2 = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            projection = nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(out_channels))

    def forward(self, x: Tensor) -> Tensor:
        branch = self.bn2(self.conv2(self.act1(self.bn1(self.conv1(x)))))
        return self.act2(branch + self.shortcut(x))


class ResNet(nn.Module):
    """A stem, stages of basic blocks, global average pooling and one dense layer."""

    def __init__(self, in_channels: int, n_classes: int, stages: list[tuple[int, int]]) -> None:
        super().__init__()
        channels = stages[0][0]
        self.conv = nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.act = nn.ReLU()
        blocks: list[nn.Module] = []
        for index, (out, n_blocks) in enumerate(stages):
            for block in range(n_blocks):
                blocks.append(BasicBlock(channels, out, stride=2 if index > 0 and block == 0 else 1))
                channels = out
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(channels, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.act(self.bn(self.conv(x))))
        return self.fc(self.flatten(self.pool(x)))


def resnet18(in_channels: int = 3, n_classes: int = 10, width: float = 1.0) -> nn.Module:
    return _resnet(in_channels, n_classes, width, (64, 128, 256, 512), 2)


def resnet20(in_channels: int = 3, n_classes: int = 10, width: float = 1.0) -> nn.Module:
    return _resnet(in_channels, n_classes, width, (16, 32, 64), 3)


def resnet32(in_channels: int = 3, n_classes: int = 10, width: float = 1.0) -> nn.Module:
    return _resnet(in_channels, n_classes, width, (16, 32, 64), 5)


def _resnet(in_channels: int, n_classes: int, width: float, bases: tuple[int, ...], n_blocks: int) -> ResNet:
    return ResNet(in_channels, n_classes, [(max(1, round(width * base)), n_blocks) for base in bases])
