"""Modules and calls that a leveled circuit cannot compute, each with what to do about it.

This is advice before an export; `fhec build` has the last word, node by node.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import nn
from torch.fx import Node
from torch.nn import functional as F

MAXIMUM = 'a maximum cannot be encrypted: pass max_pool="average", and train again'
_NO_FIT = "it has no polynomial fit here: use nn.ReLU in its place, and train again"
_STATISTICS = "it divides by a deviation of encrypted values: use batch normalization, whose statistics are constants at inference"
SOFTMAX = "it may only be the last operation, where the client computes it from the scores"
_ELEMENT = "it is not a polynomial: use an activation that has a fit, or move it out of the network"
_RECURRENT = "recurrent layers have activations inside: write them out with modules"

_MODULES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("PReLU", "RReLU", "SELU", "CELU", "GLU", "Threshold", "Softsign", "LogSigmoid", "Hardshrink", "Softshrink", "Tanhshrink"), _NO_FIT),
    (("LayerNorm", "GroupNorm", "LocalResponseNorm", "RMSNorm"), _STATISTICS),
    (("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), _STATISTICS),
    (("Softmax", "Softmax2d", "LogSoftmax", "Softmin"), SOFTMAX),
    (("RNNBase", "RNNCellBase"), _RECURRENT),
    (("MultiheadAttention",), "attention has a softmax inside"),
    (("MaxPool1d", "MaxPool2d", "MaxPool3d"), MAXIMUM),
    (("AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "FractionalMaxPool2d", "LPPool1d", "LPPool2d"), MAXIMUM),
)


def _calls() -> dict[Any, str]:
    """Every such function, and methods of tensors by name."""
    table: dict[Any, str] = {}
    for names, remedy in (
        (("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"), MAXIMUM),
        (("max", "amax", "maximum", "min", "amin", "minimum"), "a maximum or minimum cannot be encrypted"),
        (("softmax", "log_softmax"), SOFTMAX),
        (("layer_norm", "group_norm", "instance_norm", "normalize", "local_response_norm", "rms_norm"), _STATISTICS),
        (("prelu", "rrelu", "selu", "celu", "glu", "threshold", "softsign", "logsigmoid"), _NO_FIT),
        (("exp", "log", "sqrt", "rsqrt", "abs", "sign", "sin", "cos", "clamp", "clip", "where", "reciprocal"), _ELEMENT),
        (("scaled_dot_product_attention",), "attention has a softmax inside"),
    ):
        for name in names:
            for holder in (torch, F):
                if callable(getattr(holder, name, None)):
                    table[getattr(holder, name)] = remedy
            table[name] = remedy
    return table


_CALLS = _calls()


def of_module(module: nn.Module) -> str | None:
    """Why a module cannot be encrypted, and what to do; none if nothing is known against it."""
    if isinstance(module, nn.modules.batchnorm._BatchNorm) and not module.track_running_stats:
        return "it has no running statistics, so it divides by a deviation of encrypted values: track_running_stats=True, and train again"
    for names, remedy in _MODULES:
        if any(kind.__name__ in names and kind.__module__.startswith("torch.nn") for kind in type(module).__mro__):
            return remedy
    return None


def of_call(target: Any) -> str | None:
    """The same for a function, or the name of a method."""
    return _CALLS.get(target) if isinstance(target, str) or callable(target) else None


def of_node(node: Node) -> str | None:
    """The same for a traced call, which also shows what is divided by what."""
    if node.op in ("call_function", "call_method"):
        if node.target in (operator.truediv, torch.div, torch.true_divide, "div") and isinstance(node.args[1], Node):
            return "a division by an encrypted value cannot be encrypted"
        return of_call(node.target)
    return None
