"""Networks written with ReLU modules; `fhec_training.convert` makes them polynomial.

`width` multiplies every channel count. All pooling is average pooling.
"""

from __future__ import annotations

from torch import nn

from fhec_training.models.lenet import lenet
from fhec_training.models.resnet import resnet18, resnet20, resnet32
from fhec_training.models.vgg import vgg16

MODELS = {"lenet": lenet, "vgg16": vgg16, "resnet18": resnet18, "resnet20": resnet20, "resnet32": resnet32}


def build(name: str, in_channels: int, n_classes: int, width: float = 1.0) -> nn.Module:
    """A freshly initialized network by name."""
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}: choose one of {', '.join(MODELS)}")
    return MODELS[name](in_channels, n_classes, width)
