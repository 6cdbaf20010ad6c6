"""Average pooling in the place of max pooling, of the same shape.

Padding is not counted in an average, as it is never a maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

_WINDOWED: dict[type[nn.Module], type[nn.Module]] = {
    nn.MaxPool1d: nn.AvgPool1d,
    nn.MaxPool2d: nn.AvgPool2d,
    nn.MaxPool3d: nn.AvgPool3d,
}
_ADAPTIVE: dict[type[nn.Module], type[nn.Module]] = {
    nn.AdaptiveMaxPool1d: nn.AdaptiveAvgPool1d,
    nn.AdaptiveMaxPool2d: nn.AdaptiveAvgPool2d,
    nn.AdaptiveMaxPool3d: nn.AdaptiveAvgPool3d,
}

_CALLS: dict[Any, type[nn.Module]] = {
    call: kind
    for name, kind in (
        ("max_pool1d", nn.MaxPool1d),
        ("max_pool2d", nn.MaxPool2d),
        ("max_pool3d", nn.MaxPool3d),
        ("adaptive_max_pool1d", nn.AdaptiveMaxPool1d),
        ("adaptive_max_pool2d", nn.AdaptiveMaxPool2d),
        ("adaptive_max_pool3d", nn.AdaptiveMaxPool3d),
    )
    for holder in (torch, F)
    if (call := getattr(holder, name, None)) is not None
}


_WINDOW_ARGUMENTS = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
"""Of the functions; the modules take the last two the other way round."""


def average(module: nn.Module) -> nn.Module | str | None:
    """The average pooling for a max pooling module, or why there is none; none for other modules."""
    for kind, replacement in _ADAPTIVE.items():
        if isinstance(module, kind):
            return "its indices are used" if module.return_indices else replacement(module.output_size)
    for kind, replacement in _WINDOWED.items():
        if isinstance(module, kind):
            if module.return_indices:
                return "its indices are used"
            if any(d != 1 for d in (module.dilation if isinstance(module.dilation, tuple) else (module.dilation,))):
                return "an average has no dilation"
            return replacement(module.kernel_size, module.stride, module.padding, module.ceil_mode, count_include_pad=False)
    return None


def of_call(target: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> nn.Module | None:
    """The max pooling module that computes the same as a call, given its arguments after the tensor."""
    kind = _CALLS.get(target) if callable(target) else None
    if kind is None:
        return None
    names = ("output_size", "return_indices") if kind in _ADAPTIVE else _WINDOW_ARGUMENTS
    return kind(**dict(zip(names, arguments)), **keywords)
