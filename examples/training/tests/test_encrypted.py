"""Converted networks through the compiler and real encryption: the scores are those of the network, within the stated bound."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing is encrypted")
np = pytest.importorskip("numpy", reason="numpy is not installed: nothing is encrypted")
pytest.importorskip("onnxscript", reason="onnxscript is not installed: nothing is encrypted")

from networks import Functional, Inverted, Residual, stirred  # noqa: E402
from torch import nn  # noqa: E402

from fhec_training import convert, export  # noqa: E402

PATH = os.pathsep.join([str(Path(__file__).resolve().parents[3] / "target" / "release"), os.environ["PATH"]])


def relatives():
    """Other functions than ReLU, and padded max pooling."""
    convolutions = [nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(4, 4, 3), nn.ReLU6()]
    return nn.Sequential(*convolutions, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 6), nn.Hardswish(), nn.Linear(6, 3))


def run(folder, *command):
    environment = {**os.environ, "PATH": PATH}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


@pytest.mark.parametrize(
    ("build", "shape"),
    [(Functional, (1, 12, 20)), (Residual, (3, 10, 6)), (relatives, (2, 11, 8)), (Inverted, (2, 12, 8))],
    ids=["functional", "residual", "relatives", "inverted"],
)
def test_encrypted_scores_are_those_of_the_network(build, shape, tmp_path):
    if not all(shutil.which(tool, path=PATH) for tool in ("fhec", "fhe-run")):
        pytest.skip("fhec and fhe-run are not built: nothing is encrypted")
    torch.manual_seed(0)
    images = torch.randn(32, *shape)
    network = convert(stirred(build(), images), images, quantile=1.0, max_pool="average")
    export(network, images, tmp_path / "model.onnx")
    np.save(tmp_path / "images.npy", images.numpy())
    run(tmp_path, "fhec", "build", "model.onnx", "-o", "model.fhebc", "--calibrate", "images.npy", "--report", "report.json")
    run(tmp_path, "fhe-run", "infer", "model.fhebc", "images.npy", "--index", "0..2", "--raw", "--format", "npy", "--result", "scores.npy")
    bound = json.loads((tmp_path / "report.json").read_text())["predicted_max_abs_error"]
    with torch.no_grad():
        expected = network(images[:2]).numpy()
    scores = np.load(tmp_path / "scores.npy").reshape(expected.shape)
    assert np.abs(scores - expected).max() < bound < np.abs(expected).max(), f"{scores} {expected} {bound}"
