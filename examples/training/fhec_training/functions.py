"""The activation functions that have a polynomial fit, as numbers in, numbers out.

`Function` names one with its parameters, so that a fit can be cached, stored and compared; the same table with
tensors is in `torch_functions`. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, exp, log1p, sqrt, tanh


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


def _softplus(x: float, beta: float = 1.0, threshold: float = 20.0) -> float:
    return x if x * beta > threshold else log1p(exp(x * beta)) / beta


SCALAR: dict[str, Callable[..., float]] = {
    "relu": lambda x: max(x, 0.0),
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "leaky_relu": lambda x, slope=0.01: x if x >= 0 else slope * x,
    "elu": lambda x, alpha=1.0: x if x >= 0 else alpha * (exp(x) - 1),
    "silu": lambda x: x * _sigmoid(x),
    "gelu": lambda x: x * (1 + erf(x / sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x**3))) / 2,
    "mish": lambda x: x * tanh(_softplus(x)),
    "softplus": _softplus,
    "hardswish": lambda x: x * min(max(x + 3, 0.0), 6.0) / 6,
    "hardsigmoid": lambda x: min(max(x + 3, 0.0), 6.0) / 6,
    "hardtanh": lambda x, low=-1.0, high=1.0: min(max(x, low), high),
    "sigmoid": _sigmoid,
    "tanh": tanh,
}

_STRAIGHT_AT_DEGREE_2 = {"tanh", "sigmoid", "hardsigmoid", "hardtanh"}
"""Odd but for a constant: a quadratic fit of them is a straight line, and a network of straight lines is no network."""


@dataclass(frozen=True)
class Function:
    """An activation function by name, with its parameters in the order of `SCALAR`."""

    name: str
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in SCALAR:
            raise ValueError(f"no activation function is called {self.name!r}: choose one of {', '.join(SCALAR)}")

    def __call__(self, x: float) -> float:
        return SCALAR[self.name](x, *self.parameters)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{p:g}' for p in self.parameters)})" if self.parameters else self.name

    def sensible_degree(self, degree: int) -> int:
        """`degree`, or 3 where 2 would leave a straight line."""
        return 3 if degree == 2 and self.name in _STRAIGHT_AT_DEGREE_2 else degree
