"""The functions of `functions` on tensors, and how they appear in a network: as modules, functions or methods.

`of_module` and `of_call` name the function that a module or a traced call computes, or say that it is none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fhec_training.functions import Function

TENSOR: dict[str, Callable[..., Tensor]] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"),
    "mish": F.mish,
    "softplus": F.softplus,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "hardtanh": F.hardtanh,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}

_PARAMETERS: dict[str, tuple[tuple[str, float], ...]] = {
    "leaky_relu": (("negative_slope", 0.01),),
    "elu": (("alpha", 1.0),),
    "softplus": (("beta", 1.0), ("threshold", 20.0)),
    "hardtanh": (("min_val", -1.0), ("max_val", 1.0)),
}
"""Names and defaults of parameters in PyTorch, in the order of `functions.SCALAR`."""

# A module comes after those it is derived from, since the last match wins.
_MODULES: tuple[tuple[type[nn.Module], str], ...] = (
    (nn.ReLU, "relu"),
    (nn.Hardtanh, "hardtanh"),
    (nn.ReLU6, "relu6"),
    (nn.LeakyReLU, "leaky_relu"),
    (nn.ELU, "elu"),
    (nn.SiLU, "silu"),
    (nn.GELU, "gelu"),
    (nn.Mish, "mish"),
    (nn.Softplus, "softplus"),
    (nn.Hardswish, "hardswish"),
    (nn.Hardsigmoid, "hardsigmoid"),
    (nn.Sigmoid, "sigmoid"),
    (nn.Tanh, "tanh"),
)

_CALLS: dict[Any, str] = {
    torch.relu: "relu",
    torch.relu_: "relu",
    F.relu: "relu",
    F.relu_: "relu",
    F.relu6: "relu6",
    F.leaky_relu: "leaky_relu",
    F.leaky_relu_: "leaky_relu",
    F.elu: "elu",
    F.elu_: "elu",
    F.silu: "silu",
    F.gelu: "gelu",
    F.mish: "mish",
    F.softplus: "softplus",
    F.hardswish: "hardswish",
    F.hardsigmoid: "hardsigmoid",
    F.hardtanh: "hardtanh",
    F.hardtanh_: "hardtanh",
    F.sigmoid: "sigmoid",
    torch.sigmoid: "sigmoid",
    F.tanh: "tanh",
    torch.tanh: "tanh",
    "relu": "relu",
    "relu_": "relu",
    "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid",
    "tanh": "tanh",
    "tanh_": "tanh",
}
"""Functions, and methods of tensors by name."""

_CLAMPS = {torch.clamp, torch.clamp_, torch.clip, torch.clip_, torch.clamp_min, torch.clamp_min_}
_CLAMPS |= {"clamp", "clamp_", "clip", "clip_", "clamp_min", "clamp_min_"}


def of_module(module: nn.Module) -> Function | None:
    """What an activation module computes; none for every other module."""
    names = [name for kind, name in _MODULES if isinstance(module, kind)]
    if not names:
        return None
    if names[-1] == "gelu" and module.approximate == "tanh":
        return Function("gelu_tanh")
    values = (getattr(module, name) for name, _ in _PARAMETERS.get(names[-1], ()))
    return Function(names[-1], tuple(float(value) for value in values))


def of_call(target: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Function | None:
    """What a call computes, given its arguments after the tensor; none where it is no activation or its parameters are not numbers."""
    if not isinstance(target, str) and not callable(target):
        return None
    if target in _CLAMPS:
        return _clamp(**{**dict(zip(("min", "max"), arguments)), **keywords})
    name = _CALLS.get(target)
    if name == "gelu" and (keywords.get("approximate") or (arguments[0] if arguments else "none")) == "tanh":
        return Function("gelu_tanh")
    if name is None:
        return None
    given = [*arguments[: len(_PARAMETERS.get(name, ()))]]
    values = [given[i] if i < len(given) else keywords.get(key, default) for i, (key, default) in enumerate(_PARAMETERS.get(name, ()))]
    if not all(isinstance(value, (int, float)) for value in values):
        return None
    return Function(name, tuple(float(value) for value in values))


def _clamp(min: Any = None, max: Any = None) -> Function | None:
    """The activation that some people write as a clamp; none where only large values are cut, or limits are not numbers."""
    if not isinstance(min, (int, float)) or not isinstance(max, (int, float, type(None))):
        return None
    if max is None:
        return Function("relu") if min == 0 else None
    return Function("relu6") if (min, max) == (0, 6) else Function("hardtanh", (float(min), float(max)))


def evaluate(function: Function, z: Tensor) -> Tensor:
    return TENSOR[function.name](z, *function.parameters)
