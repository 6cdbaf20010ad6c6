"""Trains the networks of docs/notes/approximate.md: a LeNet, an MLP and a Conv1d network on MNIST, with ReLU and with tanh.

    pip install torch numpy onnx
    python approximate_networks.py MNIST_FOLDER OUT_FOLDER

MNIST_FOLDER holds the four idx files, gzipped or not. Writes NAME.onnx for each network, and calibrate.npy (1,000 training
images), test.npy and test-labels.npy (the 10,000 test images, normalized), valid.npy and valid-labels.npy (the last 10,000 of the
training set, which no network is trained on), and prints the accuracy of each network on both.
"""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

MEAN, STD = 0.1307, 0.3081


def idx(folder, stem):
    path = next(p for p in (folder / stem, folder / f"{stem}.gz") if p.exists())
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def lenet(act):
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.BatchNorm2d(6), act(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.BatchNorm2d(16), act(),
                         nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 84), act(), nn.Linear(84, 10))


def mlp(act):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), act(), nn.Linear(64, 32), act(), nn.Linear(32, 10))


class Rows(nn.Module):
    """The rows of an image as channels."""

    def forward(self, x):
        return x.reshape(-1, 28, 28)


def conv1d(act):
    return nn.Sequential(Rows(), nn.Conv1d(28, 32, 5, padding=2), nn.BatchNorm1d(32), act(), nn.AvgPool1d(2), nn.Conv1d(32, 32, 3, padding=1),
                         nn.BatchNorm1d(32), act(), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(224, 10))


def main(folder, out, n=24000, epochs=3):
    out.mkdir(parents=True, exist_ok=True)
    normal = lambda x: torch.tensor((x / 255 - MEAN) / STD, dtype=torch.float32).unsqueeze(1)
    x, y = normal(idx(folder, "train-images-idx3-ubyte")[:n]), torch.tensor(idx(folder, "train-labels-idx1-ubyte")[:n].astype(np.int64))
    test, labels = normal(idx(folder, "t10k-images-idx3-ubyte")), torch.tensor(idx(folder, "t10k-labels-idx1-ubyte").astype(np.int64))
    valid, valid_labels = normal(idx(folder, "train-images-idx3-ubyte")[-10000:]), torch.tensor(idx(folder, "train-labels-idx1-ubyte")[-10000:].astype(np.int64))
    np.save(out / "calibrate.npy", x[:1000].numpy())
    sets = {"valid": (valid, valid_labels), "test": (test, labels)}
    for key, (images, classes) in sets.items():
        np.save(out / f"{key}.npy", images.numpy())
        np.save(out / f"{key}-labels.npy", classes.numpy())
    for name, build in (("mlp", mlp), ("lenet", lenet), ("conv1d", conv1d)):
        for key, act in (("relu", nn.ReLU), ("tanh", nn.Tanh)):
            torch.manual_seed(1)
            network = build(act)
            optimizer = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=1e-2)
            steps = epochs * (len(x) // 128)
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
            for _ in range(epochs):
                for batch in torch.randperm(len(x))[: len(x) // 128 * 128].split(128):
                    loss = nn.functional.cross_entropy(network(x[batch]), y[batch])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    schedule.step()
            network.eval()
            with torch.no_grad():
                right = {key: (network(images).argmax(1) == classes).float().mean().item() for key, (images, classes) in sets.items()}
            torch.onnx.export(network, x[:1], out / f"{name}-{key}.onnx", dynamo=False, opset_version=17, input_names=["x"], output_names=["scores"])
            print(f"{name}-{key}: {100 * right['valid']:.2f} % valid, {100 * right['test']:.2f} % test", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
