"""Small networks in the ways that people write them."""

import torch
from torch import nn
from torch.nn import functional as F


class Functional(nn.Module):
    """Every way to call ReLU without a module, a max pooling and a dropout."""

    def __init__(self, size=(12, 20)):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv3, self.bn3 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * (size[0] // 2) * (size[1] // 2), 3)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.max_pool2d(x, 2)
        x = torch.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x)).relu()
        x = F.dropout(x, 0.25, training=self.training)
        return self.fc(torch.flatten(x, 1))


class Block(nn.Module):
    """A residual block with one ReLU module for both places."""

    def __init__(self, n, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(n, n, 1, stride, bias=False), nn.BatchNorm2d(n)) if stride > 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


class Residual(nn.Module):
    """As torchvision writes it: modules for ReLU, a functional one in the head."""

    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.blocks = nn.Sequential(Block(4), Block(4, stride=2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.hidden, self.fc = nn.Linear(4, 6), nn.Linear(6, 5)

    def forward(self, x):
        x = self.blocks(self.relu(self.bn(self.stem(x))))
        return self.fc(F.relu(self.hidden(self.pool(x).flatten(1))))


class Inverted(nn.Module):
    """Depthwise convolutions between narrow ones with ReLU6, a shortcut, SiLU, as networks for telephones are written."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU6(inplace=True))
        expand = [nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True)]
        depthwise = [nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True)]
        self.block = nn.Sequential(*expand, *depthwise, nn.Conv2d(8, 4, 1, bias=False), nn.BatchNorm2d(4))
        self.norm, self.fc = nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        x = self.stem(x)
        x = F.silu(self.norm(x + self.block(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Branching(nn.Module):
    """Cannot be traced: what it does depends on values."""

    def __init__(self, activation=None):
        super().__init__()
        self.conv, self.activation, self.softmax = nn.Conv2d(1, 2, 3), activation, nn.Softmax(1)

    def forward(self, x):
        x = self.conv(x)
        if x.sum() > 1e9:
            x = x * 2
        x = self.activation(x) if self.activation is not None else F.relu(x)
        return self.softmax(F.gelu(x).flatten(1))


def stirred(model, images):
    """The model with batch-norm statistics that are not those of a fresh one."""
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(images)
    return model
