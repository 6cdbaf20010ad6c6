"""The integer fit against brute force and neighbors; needs nothing but Python."""

from itertools import product

import pytest

from fhec_training.functions import SCALAR, Function
from fhec_training.integer_fit import fit, squared_error


@pytest.mark.parametrize(
    ("degree", "c", "bits"), [(1, 2, 4), (2, 2, 4), (2, 1, 4), (2, 0.5, 4), (2, 3, 4), (2, 1.3, 4), (3, 2, 3), (4, 2, 3)]
)
def test_fit_is_the_best_of_all_integer_vectors(degree, c, bits):
    half = 1 << (bits - 1)
    box = range(-half, half)
    best = min((squared_error(a, c, bits), a[::-1]) for a in product(box, repeat=degree + 1))
    assert fit("relu", degree, c, bits) == best[1][::-1]


@pytest.mark.parametrize(
    ("degree", "c", "bits", "expected"),
    [
        (2, 2.0, 10, (192, 511, 240)),
        (2, 2.0, 8, (48, 127, 60)),
        (2, 4.0, 10, (384, 511, 120)),
        (2, 0.5, 10, (85, 511, 511)),
        (2, 1.3, 6, (8, 31, 23)),
        (3, 2.0, 10, (192, 511, 240, 0)),
        (4, 2.0, 10, (121, 511, 418, 0, -52)),
        (4, 4.0, 12, (963, 2047, 837, 0, -26)),
    ],
)
def test_coefficients_are_those_of_the_compiler(degree, c, bits, expected):
    """The same table is tested in the compiler; the two must change together."""
    assert fit("relu", degree, c, bits) == expected


def test_no_neighbor_is_better_at_full_size():
    best = fit("relu", 2, 2.0, 6)
    error = squared_error(best, 2.0, 6)
    for step in product((-1, 0, 1), repeat=3):
        neighbor = tuple(a + s for a, s in zip(best, step))
        if step != (0, 0, 0) and all(-32 <= a <= 31 for a in neighbor):
            assert squared_error(neighbor, 2.0, 6) > error


def test_rounding_the_real_solution_is_not_the_fit():
    """With both bounds active the even coefficients depend on each other, so clamping a_2 alone is wrong."""
    a_0, _, a_2 = fit("relu", 2, 0.5, 10)
    assert a_2 == 511
    real_a_0 = round(1024 * 3 / 32)  # least squares over the reals: a_0 = 3c/16
    assert a_0 != real_a_0


def test_bad_arguments_are_refused():
    for arguments in ((0, 2.0, 10), (2, 0.0, 10), (2, 2.0, 1)):
        with pytest.raises(ValueError, match="need degree"):
            fit("relu", *arguments)


@pytest.mark.parametrize("name", [name for name in SCALAR if name != "relu"])
def test_other_functions_have_no_better_neighbor(name):
    function = Function(name)
    degree = function.sensible_degree(2)
    best = fit(function, degree, 2.5, 6)
    error = squared_error(best, 2.5, 6, function)
    for step in product((-1, 0, 1), repeat=degree + 1):
        if any(step):
            neighbor = tuple(a + s for a, s in zip(best, step))
            assert squared_error(neighbor, 2.5, 6, function) >= error


@pytest.mark.parametrize("name", SCALAR)
def test_no_fit_is_a_straight_line_at_its_sensible_degree(name):
    function = Function(name)
    assert any(fit(function, function.sensible_degree(2), 4.0, 10)[2:])


@pytest.mark.parametrize("c", [6.0, 12.0, 50.0])
def test_wide_fits_follow_relu_where_the_bounds_of_the_paper_spoil_it(c):
    def largest_error(integers):
        points = [c * k / 500 for k in range(-500, 501)]
        return max(abs(sum(a * x**j for j, a in enumerate(integers)) / 1024 - max(x, 0)) for x in points)

    wide, bounded = fit("relu", 2, c, 10, wide=True), fit("relu", 2, c, 10)
    assert squared_error(wide, c, 10) < squared_error(bounded, c, 10)
    assert largest_error(wide) < 0.12 * c
    assert wide[1] == 512


def test_hardswish_is_its_own_fit_on_its_parabola():
    assert fit("hardswish", 2, 3.0, 10) == (-1, 512, 171)  # x/2 + x**2/6, its constant making up for 171 > 1024/6


def test_unknown_functions_are_named():
    with pytest.raises(ValueError, match="'relux'.*choose one of relu"):
        fit("relux")
