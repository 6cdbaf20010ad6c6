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


def test_an_output_with_channels_last_comes_in_the_order_of_the_model(tmp_path):
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 3, 3, padding=1)

        def forward(self, x):
            return self.conv(x).permute(0, 2, 3, 1)

    torch.manual_seed(0)
    network, images = Network().eval(), torch.randn(4, 1, 4, 5)
    torch.onnx.export(network, (images[:1],), tmp_path / "model.onnx", dynamo=True, input_names=["x"], output_names=["y"])
    program = fhec.compile(tmp_path / "model.onnx", calibrate=images.numpy(), toy=True)
    assert program.interface.outputs == [("y", [1, 4, 5, 3])]
    client = fhec.Client(program, insecure=True)
    with fhec.Server(program, memory="1GiB", insecure=True) as server:
        server.add_keys(client.eval_keys())
        (answer,) = client.answers(server.run(client.encrypt(images[0].numpy())))
    exact = network(images[:1]).detach().numpy()
    # Answers are rounded, to a tenth here.
    assert np.abs(answer.outputs["y"] - exact).max() < 0.05 + program.max_abs_error
    assert np.abs(program.predict(images[0].numpy()).reshape(3, 4, 5) - exact[0].transpose(2, 0, 1)).max() < 1e-3


def test_the_names_are_those_of_the_training_package():
    training = pytest.importorskip("fhec_training")
    import fhec.torch

    for name in fhec.torch.__all__:
        assert getattr(fhec.torch, name) is getattr(training, name)
    with pytest.raises(AttributeError):
        fhec.torch.nothing
