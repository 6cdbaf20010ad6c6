"""From a torch module to encrypted scores: `cargo xtask python --torch`."""

from __future__ import annotations

import numpy as np
import pytest

import fhec

pytestmark = pytest.mark.torch


def test_a_module_goes_from_relu_to_encrypted_scores():
    torch = pytest.importorskip("torch")
    from torch import nn
    from torch.nn import functional as F

    class Network(nn.Module):
        """Functional ReLU, ReLU6, max pooling, a shortcut, pictures that are not square."""

        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Linear(4 * 5 * 8, 3)
            self.norm, self.six = nn.BatchNorm2d(4), nn.ReLU6()

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.norm(self.a(x))), 2)
            return self.c(torch.flatten(self.six(x + self.b(x)), 1))

    torch.manual_seed(1)
    images = torch.rand(96, 1, 10, 16)
    labels = (images[:, 0, :5].mean((1, 2)) > images[:, 0, 5:].mean((1, 2))).long()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=32)
    network = fhec.torch.convert(Network(), loader, max_pool="average")
    assert not network.conversion.left and len(network.conversion.replaced) == 3
    fhec.torch.fine_tune(network, loader, epochs=2)
    network.eval()

    program = fhec.compile((network, images), calibrate=images.numpy(), toy=True, log_n=11, memory="2GiB")
    assert program.input_shape == (1, 10, 16) and program.n_scores == 3
    client = fhec.Client(program, insecure=True)
    with fhec.Server(program, memory="2GiB", insecure=True) as server:
        server.add_keys(client.eval_keys())
        scores = client.decrypt(server.run(client.encrypt(images[:3].numpy())), raw=True)
    with torch.no_grad():
        exact = network(images[:3]).numpy()
    assert np.abs(scores - exact).max() < program.max_abs_error
    assert fhec.levels((network, images)).levels["FRT"] >= 2


def test_the_names_are_those_of_the_training_package():
    training = pytest.importorskip("fhec_training")
    import fhec.torch

    for name in fhec.torch.__all__:
        assert getattr(fhec.torch, name) is getattr(training, name)
    with pytest.raises(AttributeError):
        fhec.torch.nothing
