"""Quantization-aware polynomial fit of activations (paper §3.2), solved exactly over the integers.

With b fractional bits and S = 2**b the sample grid is every multiple of 1/S in [-c, c]:

    x_k = k / S   for k = -n .. n,   n = floor(c * S)

and for a function f the integer coefficients a_0 .. a_d minimize

    F(a) = sum_k ( sum_j a_j * x_k**j  -  S * f(x_k) )**2,   low <= a_j <= high.

For ReLU the bounds are -S/2 and S/2 - 1, as in the paper, and the compiler's own fit (`--relu quadratic`) has the same
definition. They suit small ranges: the best quadratic has the constant 3*c/32, which is beyond S/2 from c = 16/3 on. Other
functions, and ReLU if `wide` is asked for, have the bounds -S*max(4, c) and S*max(4, c), rounded up, which no best fit meets. The activation
is p(x) = sum_j (a_j / S) * x**j. Among equally good vectors the lexicographically smallest (a_d, ..., a_0) is returned, so
the answer is unique.

Everything is computed in rationals; values of f are taken to 2**-40, which for ReLU is exact. The grid is symmetric, so
F splits into one problem for the even coefficients and one for the odd ones; each is solved by branch and bound, whose
bound is the minimum of the remaining real variables over their box. F is convex, so that bound is convex in the branching
variable and the search walks outwards from its minimum and stops on either side at the first value that cannot win.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, floor

from fhec_training.functions import Function

_VALUE_BITS = 40
"""Values of a function are integers over two to this power."""


@dataclass(frozen=True)
class Quadratic:
    """q(a) = a'Ha - 2g'a + constant, with H positive definite."""

    h: tuple[tuple[Fraction, ...], ...]
    g: tuple[Fraction, ...]
    constant: Fraction

    def value(self, a: tuple[int | Fraction, ...]) -> Fraction:
        square = sum(self.h[i][j] * a[i] * a[j] for i in range(len(a)) for j in range(len(a)))
        return square - 2 * sum(g * x for g, x in zip(self.g, a)) + self.constant

    def fix(self, index: int, value: int | Fraction) -> Quadratic:
        """The same function of the other variables, with variable `index` set to `value`."""
        rest = [i for i in range(len(self.g)) if i != index]
        return Quadratic(
            h=tuple(tuple(self.h[i][j] for j in rest) for i in rest),
            g=tuple(self.g[i] - self.h[i][index] * value for i in rest),
            constant=self.constant + self.h[index][index] * value * value - 2 * self.g[index] * value,
        )


def fit(function: str | Function = "relu", degree: int = 2, c: float = 2.0, bits: int = 10, wide: bool = False) -> tuple[int, ...]:
    """Integer coefficients (a_0, ..., a_degree) of the best fit on [-c, c]; divide by 2**bits to use them.

    `wide` lifts the bounds that the paper puts on the coefficients for ReLU; other functions have none that matter.
    """
    if degree < 1 or not 2 <= bits <= _VALUE_BITS or not 0 < c < float("inf"):
        raise ValueError(f"need degree >= 1, 2 <= bits <= {_VALUE_BITS} and finite c > 0, got degree={degree}, bits={bits}, c={c}")
    return _fit(function if isinstance(function, Function) else Function(function), degree, float(c), bits, wide)


@lru_cache(maxsize=None)
def _fit(function: Function, degree: int, c: float, bits: int, wide: bool) -> tuple[int, ...]:
    scale = 1 << bits
    bound = scale * max(4, ceil(c))
    low, high = (-scale // 2, scale // 2 - 1) if function.name == "relu" and not wide else (-bound, bound)
    values = _values(function, c, scale)
    coefficients = [0] * (degree + 1)
    for parity in (0, 1):
        powers = list(range(parity, degree + 1, 2))
        for power, value in zip(powers, _minimize(_objective(powers, values, scale), low, high)):
            coefficients[power] = value
    return tuple(coefficients)


def squared_error(coefficients: tuple[int, ...], c: float, bits: int, function: Function = Function("relu")) -> Fraction:
    """F(a) of the module documentation, summed point by point: the slow and obvious oracle."""
    scale, degree = 1 << bits, len(coefficients) - 1
    values = _values(function, c, scale)
    n = len(values) // 2
    # Every term is an integer over scale**degree * 2**_VALUE_BITS; x = k/scale and the values are put over that denominator.
    lifted = [(a * scale ** (degree - j)) << _VALUE_BITS for j, a in enumerate(coefficients)]
    total = 0
    for k, value in zip(range(-n, n + 1), values):
        polynomial = 0
        for a in reversed(lifted):
            polynomial = polynomial * k + a
        total += (polynomial - value * scale ** (degree + 1)) ** 2
    return Fraction(total, (scale**degree << _VALUE_BITS) ** 2)


@lru_cache(maxsize=None)
def _values(function: Function, c: float, scale: int) -> tuple[int, ...]:
    """f at every point of the grid, from -n to n."""
    n = floor(Fraction(c) * scale)
    return tuple(round(function(k / scale) * (1 << _VALUE_BITS)) for k in range(-n, n + 1))


def _objective(powers: list[int], values: tuple[int, ...], scale: int) -> Quadratic:
    """F restricted to coefficients of one parity, up to the constant that the other parity decides."""
    n = len(values) // 2
    sums = {p: sum(k**p for k in range(-n, n + 1)) for p in {i + j for i in powers for j in powers}}
    moments = (sum(k**i * value for k, value in zip(range(-n, n + 1), values)) for i in powers)
    return Quadratic(
        h=tuple(tuple(Fraction(sums[i + j], scale ** (i + j)) for j in powers) for i in powers),
        g=tuple(Fraction(moment * scale, (1 << _VALUE_BITS) * scale**i) for i, moment in zip(powers, moments)),
        constant=Fraction(0),
    )


def _minimize(q: Quadratic, low: int, high: int) -> tuple[int, ...]:
    """The integer minimizer of `q` in the box [low, high]^n, ties broken as in the module documentation."""
    best: list[tuple[Fraction, tuple[int, ...]]] = []

    def search(rest: Quadratic, chosen: tuple[int, ...]) -> None:
        # `chosen` holds the highest power first: that is the order of branching and of the tie-break.
        if not rest.g:
            if not best or (rest.constant, chosen) < best[0]:
                best[:] = [(rest.constant, chosen)]
            return
        last = len(rest.g) - 1
        center = floor(_box_minimizer(rest, low, high)[last])
        for values in (range(center, low - 1, -1), range(center + 1, high + 1)):
            for value in values:
                branch = rest.fix(last, value)
                if best and _box_minimum(branch, low, high) > best[0][0]:
                    break
                search(branch, (*chosen, value))

    search(q, ())
    return best[0][1][::-1]


def _box_minimum(q: Quadratic, low: int, high: int) -> Fraction:
    return q.value(_box_minimizer(q, low, high)) if q.g else q.constant


def _box_minimizer(q: Quadratic, low: int, high: int) -> tuple[Fraction, ...]:
    """Real minimizer over the box: the best feasible stationary point over all sets of active bounds."""
    candidates = []
    for active in product((None, low, high), repeat=len(q.g)):
        point = _stationary(q, active)
        if all(low <= x <= high for x in point):
            candidates.append((q.value(point), point))
            if all(bound is None for bound in active):
                break  # The unconstrained minimizer is inside the box: nothing can be better.
    return min(candidates)[1]


def _stationary(q: Quadratic, active: tuple[int | None, ...]) -> tuple[Fraction, ...]:
    """The stationary point with the variables of `active` held at their bounds."""
    free = [i for i, bound in enumerate(active) if bound is None]
    held = [(i, bound) for i, bound in enumerate(active) if bound is not None]
    matrix = [[q.h[i][j] for j in free] for i in free]
    right = [q.g[i] - sum(q.h[i][j] * bound for j, bound in held) for i in free]
    point = [Fraction(bound if bound is not None else 0) for bound in active]
    for i, value in zip(free, _solve(matrix, right)):
        point[i] = value
    return tuple(point)


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gaussian elimination; pivots are positive because the matrix is positive definite."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i, pivot in enumerate(rows):
        for row in rows[i + 1 :]:
            factor = row[i] / pivot[i]
            row[i:] = [x - factor * y for x, y in zip(row[i:], pivot[i:])]
    solution = [Fraction(0)] * len(rows)
    for i in reversed(range(len(rows))):
        known = sum(rows[i][j] * solution[j] for j in range(i + 1, len(rows)))
        solution[i] = (rows[i][-1] - known) / rows[i][i]
    return solution
