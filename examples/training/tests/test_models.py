"""Shapes and layer counts of the networks."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: model tests skipped")

from torch import nn  # noqa: E402

from fhec_training.activation import activations  # noqa: E402
from fhec_training.conversion import convert  # noqa: E402
from fhec_training.models import build  # noqa: E402


@pytest.mark.parametrize(
    ("name", "size", "n_convolutions", "n_activations", "n_linear"),
    [
        ("lenet", 28, 2, 3, 2),
        ("vgg16", 32, 13, 15, 3),
        ("resnet18", 32, 17 + 3, 17, 1),
        ("resnet20", 32, 19 + 2, 19, 1),
        ("resnet32", 32, 31 + 2, 31, 1),
    ],
)
def test_layers_are_as_published(name, size, n_convolutions, n_activations, n_linear):
    """The second term of the convolutions is the projections of shortcuts."""
    channels = 1 if name == "lenet" else 3
    model = convert(build(name, channels, 7, width=0.25)).eval()
    kinds = [type(m) for m in model.modules()]
    assert kinds.count(nn.Conv2d) == n_convolutions
    assert kinds.count(nn.Linear) == n_linear
    assert len(activations(model)) == n_activations
    assert model(torch.zeros(2, channels, size, size)).shape == (2, 7)


def test_resnet20_has_the_usual_size():
    n_parameters = sum(p.numel() for p in build("resnet20", 3, 10).parameters())
    assert n_parameters == 272_474


def test_width_scales_channels():
    assert build("resnet20", 3, 10, width=0.5).conv.out_channels == 8


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="choose one of lenet"):
        build("alexnet", 3, 10)
