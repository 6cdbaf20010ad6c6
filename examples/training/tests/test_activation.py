"""Penalty, clipping and warm-up."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: activation tests skipped")

from torch import nn  # noqa: E402

from fhec_training.activation import PolyActivation, activations, horner, warm_up  # noqa: E402
from fhec_training.activation import penalty as range_penalty  # noqa: E402
from fhec_training.conversion import ConversionError, convert  # noqa: E402
from fhec_training.ranges import input_ranges  # noqa: E402


def reference(activation, z):
    """Loss terms by plain autograd: what the fused function must equal."""
    clipped = z.clamp(-activation.c, activation.c)
    return horner(activation.coefficients, clipped), torch.linalg.vector_norm(z - clipped)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_fused_gradient_equals_autograd(degree):
    torch.manual_seed(degree)
    activation = PolyActivation(degree)
    weights = torch.randn(50, dtype=torch.float64)
    gradients = []
    for fused in (True, False):
        z = (3 * torch.linspace(-1, 1, 50, dtype=torch.float64)).requires_grad_()
        if fused:
            value, penalty = activation(z), range_penalty(activation)
        else:
            value, penalty = reference(activation, z)
        ((weights * value).sum() + 0.7 * penalty).backward()
        gradients.append((value.detach(), z.grad))
    torch.testing.assert_close(gradients[0], gradients[1])


def test_penalty_gradient_pulls_values_back_into_range():
    activation = PolyActivation()
    z = torch.tensor([-3.0, -1.0, 0.0, 1.0, 5.0], requires_grad=True)
    activation(z)
    range_penalty(activation).backward()
    assert z.grad[0] < 0 < z.grad[4]
    assert z.grad[1:4].tolist() == [0, 0, 0]


def test_penalty_is_the_mean_over_layers_of_the_norm_before_clipping():
    model = nn.Sequential(PolyActivation(), nn.Identity(), PolyActivation())
    z = torch.tensor([5.0, 2.0, -6.0])
    model(z)
    first = 5.0  # (3, 0, -4)
    values = horner(model[0].coefficients, z.clamp(-2, 2))
    second = torch.linalg.vector_norm(values - values.clamp(-2, 2)).item()
    assert range_penalty(model).item() == pytest.approx((first + second) / 2)


def test_penalty_without_excess_has_zero_gradient():
    activation = PolyActivation()
    z = torch.tensor([0.5, -1.5], requires_grad=True)
    activation(z)
    range_penalty(activation).backward()
    assert z.grad.tolist() == [0, 0]


def test_penalty_forgets_the_previous_pass():
    activation = PolyActivation()
    activation(torch.tensor([4.0]))
    assert range_penalty(activation).item() == 2
    activation(torch.tensor([0.0]))
    assert range_penalty(activation).item() == 0


def test_values_are_clipped_in_training_only():
    activation = PolyActivation()
    z = torch.tensor([-10.0, 10.0])
    inside = activation(z)
    range_penalty(activation)
    activation.eval()
    a = [x / 1024 for x in (192, 511, 240)]
    expected_inside = [a[0] + a[1] * x + a[2] * x * x for x in (-2, 2)]
    expected_outside = [a[0] + a[1] * x + a[2] * x * x for x in (-10, 10)]
    assert inside.tolist() == pytest.approx(expected_inside)
    assert activation(z).tolist() == pytest.approx(expected_outside)
    assert activation.excesses == []


def test_clipping_can_be_switched_off_while_the_penalty_stays():
    activation = PolyActivation()
    activation.clip = float("inf")
    z = torch.tensor([10.0])
    assert activation(z).item() == pytest.approx(horner(activation.coefficients, z).item())
    assert range_penalty(activation).item() == 8


@pytest.mark.parametrize(("c", "integers"), [(2.0, (192, 511, 240)), (5.0, (480, 511, 96)), (5.5, (531, 512, 87)), (30.0, (2880, 512, 16))])
def test_the_bounds_of_the_paper_hold_where_they_do_no_harm(c, integers):
    assert PolyActivation(c=c).integers == integers


def test_warm_up_is_the_published_sequence():
    assert [warm_up(t) for t in range(7)] == [1 / 100, 1 / 50, 1 / 10, 1 / 5, 1, 1, 1]


def test_convert_replaces_every_relu_and_nothing_else():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Sequential(nn.ReLU(inplace=True), nn.Flatten()))
    convert(model, degree=3, c=1.5, bits=8)
    assert list(activations(model)) == ["1", "2.0"]
    assert not any(isinstance(m, nn.ReLU) for m in model.modules())
    assert all((a.c, a.bits, len(a.integers)) == (1.5, 8, 4) for a in activations(model).values())


def test_convert_counts_each_use_of_a_shared_relu():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x):
            return self.relu(self.relu(x) + 4)

    model = convert(Twice())
    model(torch.tensor([4.0]))
    first, second = 2.0, horner(model.relu.coefficients, torch.tensor(2.0)).item() + 4 - 2
    assert range_penalty(model).item() == pytest.approx((first + second) / 2)


def test_convert_refuses_a_model_without_relu():
    with pytest.raises(ConversionError, match="no nn.ReLU"):
        convert(nn.Linear(1, 1))


def test_input_ranges_are_extremes_and_leave_the_mode_alone():
    model = nn.Sequential(PolyActivation())
    assert input_ranges(model, torch.tensor([-3.0, 7.0])) == {"0": (-3.0, 7.0)}
    assert model.training
