"""What takes minutes: `cargo xtask python --slow`."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import DIGITS, LENET, ROOT, command

import fhec

pytestmark = pytest.mark.slow
RESNET = ROOT / "onnx-models" / "resnet20-cifar10.onnx"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """The Python of an environment with the wheel and what the wheel brings."""
    wheel = os.environ.get("FHEC_WHEEL") or pytest.skip("FHEC_WHEEL names no wheel: cargo xtask python --slow")
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], capture_output=True, check=True).stdout
    assert {package["name"] for package in json.loads(listed)} <= {"fhec", "numpy", "pip", "setuptools"}
    return python


def color_pictures(folder: Path) -> Path:
    """Pictures of 32x32 for a network that was trained on such: smooth patches of color, or those that FHEC_CIFAR names."""
    if "FHEC_CIFAR" in os.environ:
        return Path(os.environ["FHEC_CIFAR"])
    rng = np.random.default_rng(3)
    coarse = rng.integers(0, 256, (24, 3, 5, 5)).astype(float)
    at = np.linspace(0, 4, 32)
    low, part = np.minimum(at.astype(int), 3), at - np.minimum(at.astype(int), 3)
    rows = coarse[:, :, low] * (1 - part)[:, None] + coarse[:, :, low + 1] * part[:, None]
    pixels = rows[..., low] * (1 - part) + rows[..., low + 1] * part
    np.savez(folder / "pictures.npz", x=pixels.astype(np.uint8), y=np.zeros(24, dtype=np.int64))
    return folder / "pictures.npz"


@pytest.mark.parametrize("which", ["lenet", "resnet20"])
def test_the_sample_runs_with_numpy_alone(which, fresh, tmp_path):
    model, pictures = (LENET, DIGITS) if which == "lenet" else (RESNET, color_pictures(tmp_path))
    sample = Path(__file__).with_name("sample.py")
    done = subprocess.run([fresh, sample, model, pictures, command("fhe-serve")], cwd=tmp_path, text=True, capture_output=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0 and "the same classes over HTTP" in done.stdout


@pytest.mark.parametrize("which", ["lenet", "resnet20"])
def test_a_run_costs_what_the_command_takes(which, tmp_path):
    """Processor time, one thread each, in turns: at most two per cent more."""
    model = LENET if which == "lenet" else RESNET
    pictures = str(DIGITS) if which == "lenet" else str(color_pictures(tmp_path))
    program = fhec.compile(model, calibrate=pictures, memory="6GiB", check=False)
    program.save(tmp_path / "program.fhebc")
    sample = program.interface.read(pictures)[0][:1]
    np.save(tmp_path / "x.npy", sample)
    bench = [command("fhe-run"), "bench", "program.fhebc", "x.npy", "--memory", "6GiB", "--format", "json", "--quiet"]
    runs = 41 if which == "lenet" else 3
    client = fhec.Client(program)
    server = fhec.Server(program, memory="6GiB", threads=1)
    server.add_keys(client.eval_keys())

    def here() -> float:
        """The work of one run of the bench: encrypt, evaluate, decrypt, and the same in the clear."""
        began = time.process_time()
        client.decrypt(server.run(client.encrypt(sample)))
        program.predict(sample)
        return time.process_time() - began

    def there() -> float:
        env = {**os.environ, "RAYON_NUM_THREADS": "1"}
        options = ["--runs", str(runs), "--warmup", "1"]
        done = subprocess.run([*bench, *options], cwd=tmp_path, env=env, capture_output=True, check=True)
        return float(json.loads(done.stdout)["median_core_seconds"])

    here()
    ratios = []
    for _ in range(5 if which == "lenet" else 3):
        ours, theirs = statistics.median(here() for _ in range(runs)), there()
        ratios.append(ours / theirs)
        print(f"{which}: {ours:.4f} core-seconds here, {theirs:.4f} in the command")
    assert statistics.median(ratios) < 1.02, ratios
