"""Every way to write an activation becomes a polynomial, and what cannot is named."""

import copy
import math
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: conversion tests skipped")

from networks import Branching, Functional, Residual, stirred  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fhec_training.activation import PolyActivation, activations  # noqa: E402
from fhec_training.conversion import ConversionError, ConversionWarning, convert  # noqa: E402
from fhec_training.functions import SCALAR, Function  # noqa: E402
from fhec_training.torch_functions import evaluate  # noqa: E402


def images(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Called(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


@pytest.mark.parametrize("name", SCALAR)
def test_a_function_of_numbers_is_that_of_tensors(name):
    points = torch.linspace(-7, 7, 57, dtype=torch.float64)
    values = [Function(name)(x) for x in points.tolist()]
    torch.testing.assert_close(evaluate(Function(name), points), torch.tensor(values, dtype=torch.float64))


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (nn.ReLU(), "relu"),
        (nn.ReLU6(), "relu6"),
        (nn.LeakyReLU(0.2), Function("leaky_relu", (0.2,))),
        (nn.ELU(0.5), Function("elu", (0.5,))),
        (nn.SiLU(), "silu"),
        (nn.GELU(), "gelu"),
        (nn.GELU("tanh"), "gelu_tanh"),
        (nn.Mish(), "mish"),
        (nn.Softplus(), Function("softplus", (1.0, 20.0))),
        (nn.Hardswish(), "hardswish"),
        (nn.Hardsigmoid(), "hardsigmoid"),
        (nn.Hardtanh(-2, 2), Function("hardtanh", (-2.0, 2.0))),
        (nn.Tanh(), "tanh"),
        (nn.Sigmoid(), "sigmoid"),
    ],
)
def test_a_module_becomes_the_fit_of_its_own_function(module, function):
    model = convert(nn.Sequential(nn.Linear(3, 3), copy.deepcopy(module)), c=2.0)
    activation = model[1]
    assert activation.function == (Function(function) if isinstance(function, str) else function)
    points = torch.linspace(-2, 2, 101)
    largest = (activation.eval()(points) - module(points)).abs().max().item()
    assert largest < 0.3, f"{activation}: {largest}"


@pytest.mark.parametrize(
    ("call", "function"),
    [
        (F.relu, "relu"),
        (torch.relu, "relu"),
        (lambda x: x.relu(), "relu"),
        (lambda x: (x + 1).relu_(), "relu"),
        (lambda x: F.leaky_relu(x, 0.3), Function("leaky_relu", (0.3,))),
        (lambda x: F.leaky_relu(x, negative_slope=0.3, inplace=True), Function("leaky_relu", (0.3,))),
        (lambda x: F.relu6(input=x), "relu6"),
        (F.silu, "silu"),
        (F.gelu, "gelu"),
        (lambda x: F.gelu(x, approximate="tanh"), "gelu_tanh"),
        (F.hardswish, "hardswish"),
        (lambda x: x.tanh(), "tanh"),
        (lambda x: x.clamp(min=0), "relu"),
        (lambda x: torch.clamp(x, 0, 6), "relu6"),
        (lambda x: x.clip(-2.0, 2.0), Function("hardtanh", (-2.0, 2.0))),
        (lambda x: torch.clamp_min(x, 0.0), "relu"),
        (torch.sigmoid, "sigmoid"),
    ],
)
def test_a_call_becomes_the_fit_of_its_function(call, function):
    (activation,) = activations(convert(Called(call))).values()
    assert activation.function == (Function(function) if isinstance(function, str) else function)


def test_functional_network_keeps_parameter_names_and_other_values():
    model = stirred(Functional(), images(8, 1, 12, 20)).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    converted = convert(model, max_pool="average")
    assert len(activations(converted)) == 3
    after = converted.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert converted.fc.weight is model.fc.weight
    # With the functions in place of their polynomials, only the pooling differs from the original.
    x = images(2, 1, 12, 20, seed=1)
    y = F.avg_pool2d(F.relu(model.bn1(model.conv1(x))), 2)
    y = F.relu(model.bn2(model.conv2(y)))
    y = model.fc(F.relu(model.bn3(model.conv3(y))).flatten(1))
    for activation in activations(converted).values():
        activation.register_forward_hook(lambda module, inputs, _: F.relu(inputs[0]))
    torch.testing.assert_close(converted.eval()(x), y)


def test_functional_dropout_follows_the_mode_again():
    model = Functional()
    x = images(4, 1, 12, 20)
    converted = convert(model, max_pool="average")
    assert [m.p for m in converted.modules() if isinstance(m, nn.Dropout)] == [0.25]
    assert torch.equal(converted.eval()(x), converted(x))
    assert not torch.equal(converted.train()(x), converted(x))


def test_residual_network_shares_one_polynomial_where_it_shared_a_relu():
    converted = convert(Residual())
    assert sorted(activations(converted)) == ["blocks.0.relu", "blocks.1.relu", "relu", "relu_1"]
    assert not any(isinstance(m, nn.ReLU) for m in converted.modules())
    assert converted(images(2, 3, 10, 6)).shape == (2, 5)


def test_ranges_are_measured_before_the_replacement_with_a_margin():
    model = nn.Sequential(nn.ReLU(), nn.ReLU())
    x = torch.tensor([[-8.0, 3.0, 5.0]])
    convert(model, x, quantile=1.0, margin=1.5)
    assert [a.c for a in activations(model).values()] == [12.0, 7.5]
    assert [a.clip for a in activations(model).values()] == [12.0, 7.5]


def test_ranges_of_several_batches_are_the_widest_and_of_most_values():
    model = nn.Sequential(nn.ReLU())
    wild = torch.ones(1, 1000)
    wild[0, 0] = 1000.0
    convert(model, [(wild, torch.tensor([0])), (3 * wild, torch.tensor([1]))], quantile=0.99, margin=1.0)
    assert model[0].c == 3.0


def test_measuring_leaves_statistics_and_modes_alone():
    model = stirred(Residual(), images(8, 3, 8, 8))
    model.blocks[0].bn1.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    converted = convert(model, images(4, 3, 8, 8, seed=2))
    assert all(torch.equal(converted.state_dict()[name], value) for name, value in before.items())
    assert converted.training and converted.get_submodule("blocks.0.bn2").training and not converted.get_submodule("blocks.0.bn1").training


def test_max_pool_stays_and_is_named_unless_asked_for():
    model = nn.Sequential(nn.Conv2d(1, 1, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    with pytest.warns(ConversionWarning, match=r'2: MaxPool2d: a maximum cannot be encrypted: pass max_pool="average"'):
        converted = convert(model)
    assert [(entry.name, entry.what) for entry in converted.conversion.left] == [("2", "MaxPool2d")]
    with pytest.warns(ConversionWarning, match="call of max_pool2d: a maximum cannot be encrypted"):
        convert(Functional())


@pytest.mark.parametrize(
    ("pool", "shape"),
    [
        (nn.MaxPool2d(3, 2, 1), (1, 2, 9, 14)),
        (nn.MaxPool2d((2, 3), ceil_mode=True), (1, 2, 9, 14)),
        (nn.MaxPool1d(4, 3), (1, 2, 17)),
        (nn.AdaptiveMaxPool2d((2, 3)), (1, 2, 9, 14)),
        (Called(lambda x: F.max_pool2d(x, 3, 2, 1)), (1, 2, 9, 14)),
        (Called(lambda x: F.max_pool2d(x, kernel_size=2, ceil_mode=True)), (1, 2, 9, 14)),
        (Called(lambda x: F.max_pool2d(x, 2, None, 0, 1, True)), (1, 2, 9, 14)),
        (Called(lambda x: F.adaptive_max_pool2d(x, 1)), (1, 2, 9, 14)),
    ],
)
def test_max_pool_becomes_an_average_of_the_same_shape(pool, shape):
    x = images(*shape)
    expected = pool(x).shape
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = convert(nn.Sequential(pool), max_pool="average")
    assert converted(x).shape == expected
    # Of a constant picture the average is the constant, at the border too.
    torch.testing.assert_close(converted(torch.full(shape, 3.0)), torch.full(expected, 3.0))


@pytest.mark.parametrize(("pool", "why"), [(nn.MaxPool2d(2, dilation=2), "no dilation"), (nn.MaxPool2d(2, return_indices=True), "indices")])
def test_pools_that_no_average_replaces_are_named(pool, why):
    with pytest.warns(ConversionWarning, match=why):
        convert(nn.Sequential(nn.ReLU(), pool), max_pool="average")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.PReLU(), "1: PReLU: it has no polynomial fit"),
        (nn.LayerNorm(4), "1: LayerNorm: it divides by a deviation"),
        (nn.InstanceNorm2d(4), "1: InstanceNorm2d: it divides by a deviation"),
        (nn.BatchNorm2d(4, track_running_stats=False), "1: BatchNorm2d: it has no running statistics"),
        (nn.Sequential(nn.Softmax(1), nn.Linear(4, 4)), "1.0: Softmax: it may only be the last"),
        (nn.LSTM(4, 4), "1: LSTM: recurrent layers"),
        (Called(lambda x: x.abs()), "1.abs_1: call of abs: it is not a polynomial"),
        (Called(lambda x: 2 * torch.softmax(x, 1)), "call of softmax: it may only be the last"),
        (Called(lambda x: x.clamp(max=3)), "call of clamp: it is not a polynomial"),
        (Called(lambda x: x / x.sum(1, keepdim=True)), "call of truediv: a division by an encrypted value"),
        (Called(lambda x: x.max(1).values), "call of max: a maximum"),
    ],
)
def test_what_cannot_be_encrypted_is_named(module, words):
    with pytest.warns(ConversionWarning, match=words):
        convert(nn.Sequential(nn.ReLU(), module))


@pytest.mark.parametrize("end", [nn.Identity(), nn.Softmax(1), nn.LogSoftmax(1), Called(lambda x: F.log_softmax(x, 1))])
def test_nothing_is_said_against_what_can_be_encrypted(end):
    convolution = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.AvgPool2d(2), nn.Dropout()]
    model = nn.Sequential(*convolution, nn.Flatten(), nn.Linear(8, 2), end)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = convert(model)
    assert converted is model
    assert converted.conversion.left == []
    assert str(converted.conversion) == "replaced:\n  2: ReLU -> relu as degree 2 on [-2, 2]"


class Optional(nn.Module):
    """Branches on arguments that nobody gives when a picture is classified."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 3), nn.Linear(4, 3)

    def forward(self, x, with_features=False, *, scale=None):
        x = F.relu(self.conv(x))
        features = (x if scale is None else x * scale).mean((2, 3))
        return (self.fc(features), features) if with_features else self.fc(features)


def test_arguments_that_may_be_left_out_are():
    model, x = Optional(), images(2, 1, 6, 5)
    expected = model(x)
    converted = convert(model, x)
    assert len(activations(converted)) == 1 and not converted.conversion.left
    for activation in activations(converted).values():
        activation.register_forward_hook(lambda module, inputs, _: F.relu(inputs[0]))
    torch.testing.assert_close(converted(x), expected)


class Particular(nn.Module):
    """Looks at shapes before it does anything."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(4 * 3 * 2, 3)

    def forward(self, x):
        assert x.shape[1] == 1 and x.dtype == torch.float32
        if x.dim() == 3:
            x = x.unsqueeze(0)
        n, channels, height, width = x.size()
        x = F.relu(self.conv(x))
        x = F.max_pool2d(x, 2) if height > 4 else x
        return self.fc(x.view(n, -1))


def test_branches_on_shapes_are_followed_for_any_number_of_samples():
    model, x = Particular(), images(5, 1, 6, 5)
    converted = convert(model, x, max_pool="average")
    assert [entry.what for entry in converted.conversion.replaced] == ["call of relu", "call of max_pool2d"]
    assert converted.conversion.untraced is None
    assert [converted(x[:n]).shape for n in (1, 5)] == [(1, 3), (5, 3)]


class Counting(nn.Module):
    """Does something else for a batch of one."""

    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(x) if x.shape[0] == 1 else F.relu(2 * x)


def test_branches_on_the_number_of_samples_are_not_followed():
    with pytest.warns(ConversionWarning, match="a branch depends on eq"):
        convert(Counting(), images(3, 4))


def test_a_network_that_cannot_be_traced_is_converted_by_modules_and_says_so():
    with pytest.warns(ConversionWarning, match=r"functional calls were not looked for: the model cannot be traced \(TraceError") as caught:
        converted = convert(Branching(nn.ReLU()))
    assert isinstance(converted.activation, PolyActivation)
    assert "gelu" not in str(caught[0].message)


def test_with_data_the_calls_of_an_untraceable_network_are_named():
    with pytest.warns(ConversionWarning, match="call of gelu: it was not replaced, since the model cannot be traced: write activations as modules") as caught:
        convert(Branching(nn.ReLU()), images(2, 1, 6, 5))
    assert "call of softmax" not in str(caught[0].message), "the module was named already"


def test_a_network_with_nothing_but_untraceable_calls_is_refused():
    with pytest.raises(ConversionError, match=r"no activation module.*cannot be traced \(TraceError.*write activations as modules"):
        convert(Branching())


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="max_pool is"):
        convert(nn.Sequential(nn.ReLU()), max_pool="avg")
    with pytest.raises(ValueError, match="quantile"):
        convert(nn.Sequential(nn.ReLU()), torch.ones(1, 1), quantile=0.0)


def test_degree_two_tanh_would_be_a_line_and_gets_degree_three():
    (activation,) = activations(convert(nn.Sequential(nn.Tanh()))).values()
    assert len(activation.coefficients) == 4 and not math.isclose(activation.coefficients[3], 0.0)


def test_converting_twice_changes_nothing_more():
    model = convert(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    with pytest.raises(ConversionError, match="no nn.ReLU"):
        convert(model)
