"""What the tests share: a small network on a ring that protects nothing, compiled once."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import fhec

ROOT = Path(__file__).resolve().parents[3]
LENET = ROOT / "onnx-models" / "lenet-mnist-0.onnx"
DIGITS = ROOT / "examples" / "digits"


@pytest.fixture(scope="session")
def pictures() -> np.ndarray:
    """Ten digits as bytes, [10, 1, 28, 28], made of rectangles: no picture reader is needed."""
    rng = np.random.default_rng(7)
    images = np.zeros((10, 1, 28, 28), dtype=np.uint8)
    for image in images:
        for _ in range(4):
            y, x, h, w = rng.integers(2, 18, 2).tolist() + rng.integers(3, 9, 2).tolist()
            image[0, y : y + h, x : x + w] = rng.integers(100, 256)
    return images


@pytest.fixture(scope="session")
def program(pictures: np.ndarray) -> fhec.Program:
    return fhec.compile(LENET, calibrate=pictures, toy=True, log_n=11, memory="2GiB")


@pytest.fixture(scope="session")
def client(program: fhec.Program) -> fhec.Client:
    return fhec.Client(program.interface, insecure=True)


@pytest.fixture(scope="session")
def keys(client: fhec.Client) -> fhec.EvalKeys:
    return client.eval_keys()


@pytest.fixture
def server(program: fhec.Program, keys: fhec.EvalKeys):
    with fhec.Server(program, memory="2GiB", insecure=True) as server:
        server.add_keys(keys)
        yield server


def command(name: str) -> str:
    """The path of a command that was built before, or a skip that says so."""
    path = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / name
    if not os.access(path, os.X_OK):
        pytest.skip(f"{name} is not built: cargo build --release")
    return str(path)
