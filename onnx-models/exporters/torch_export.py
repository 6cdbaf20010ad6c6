"""Exports one small residual CNN with both PyTorch exporters.

    pip install torch onnx onnxscript
    python torch_export.py

Writes torch-script.onnx (TorchScript exporter), torch-dynamo.onnx (torch.export), and with each a JSON file that
holds one input and PyTorch's own answer.
"""

import json
from pathlib import Path

import onnx
import torch
from torch import nn

HERE = Path(__file__).parent


class Quadratic(nn.Module):
    """a*x^2 + b*x + c with one learned triple per channel."""

    def __init__(self, channels):
        super().__init__()
        spread = torch.rand(3, channels, 1, 1)
        self.a = nn.Parameter(0.2 + 0.1 * spread[0])
        self.b = nn.Parameter(0.4 + 0.2 * spread[1])
        self.c = nn.Parameter(0.1 + 0.1 * spread[2])

    def forward(self, x):
        return self.a * x**2 + self.b * x + self.c


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.act1 = Quadratic(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, groups=2)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.act2 = Quadratic(c_out)
        self.down = nn.Sequential()
        if stride != 1:
            self.down = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = self.act1(self.bn1(self.conv1(x)))
        return self.act2(self.bn2(self.conv2(y)) + self.down(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1), nn.BatchNorm2d(4), Quadratic(4))
        self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 6, 2))
        self.pool = nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.fc(self.drop(x.mean(dim=(2, 3))))


def trained_looking(model):
    """A few training steps on noise, so that batch-norm statistics are not the initial ones."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        x, labels = torch.randn(16, 3, 12, 12), torch.randint(0, 5, (16,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()
    return model.eval()


def strip_traces(path):
    """Removes the source locations that the exporter writes into every node."""
    proto = onnx.load(path)
    for item in [*proto.graph.node, *proto.graph.value_info, *proto.graph.input, *proto.graph.output, proto.graph]:
        del item.metadata_props[:]
        item.doc_string = ""
    del proto.metadata_props[:]
    onnx.save(proto, path)


def main():
    torch.manual_seed(7)
    model = trained_looking(Net())
    x = torch.randn(1, 3, 12, 12)
    expected = model(x)
    torch.onnx.export(
        model, (x,), HERE / "torch-script.onnx", dynamo=False, opset_version=13,
        input_names=["image"], output_names=["scores"], dynamic_axes={"image": {0: "batch"}},
        do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
    )
    torch.onnx.export(model, (x,), HERE / "torch-dynamo.onnx", dynamo=True, external_data=False, optimize=False)
    strip_traces(HERE / "torch-dynamo.onnx")
    sample = {"input": x.flatten().tolist(), "output": expected.flatten().tolist()}
    for name in ("torch-script", "torch-dynamo"):
        (HERE / f"{name}.json").write_text(json.dumps(sample))


if __name__ == "__main__":
    main()
