"""The notebook: the same steps as the page, and they run."""

import gzip
import json
import re
import struct
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "examples" / "notebooks" / "relu-to-encrypted.ipynb"
PAGE = ROOT / "docs" / "training.md"


def cells():
    """Code cells of the notebook."""
    return ["".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_notebook_and_page_have_the_same_steps():
    section = PAGE.read_text().split("\n## ")[1]
    assert section.startswith("A ReLU network, ten minutes, encrypted")
    assert cells() == re.findall(r"^```python\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)


def test_notebook_has_small_outputs_without_errors_or_paths():
    text = NOTEBOOK.read_text()
    outputs = [output for cell in json.loads(text)["cells"] for output in cell.get("outputs", [])]
    assert outputs, "the notebook is kept with what it printed"
    assert len(json.dumps(outputs)) < 10_000
    assert not any(output["output_type"] == "error" for output in outputs)
    assert not re.search(r"/(home|root|work|tmp)/", text)


@pytest.fixture
def small_mnist(tmp_path):
    """Files like MNIST's: class k is a bright row at height 2k + 4, on noise."""
    torch = pytest.importorskip("torch", reason="torch is not installed: the notebook is not run")
    generator = torch.Generator().manual_seed(1)
    for stem, n in (("train", 1536), ("t10k", 100)):
        labels = torch.arange(n) % 10
        images = torch.randint(0, 60, (n, 28, 28), generator=generator)
        images[torch.arange(n), 2 * labels + 4] = 250
        for kind, header, values in (
            ("images-idx3", struct.pack(">4I", 0x803, n, 28, 28), images.flatten().tolist()),
            ("labels-idx1", struct.pack(">2I", 0x801, n), labels.tolist()),
        ):
            with gzip.open(tmp_path / f"{stem}-{kind}-ubyte.gz", "wb") as file:
                file.write(header + bytes(values))
    return tmp_path


def test_notebook_runs_from_the_first_to_the_last_cell(small_mnist, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: the notebook is not run")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: the notebook is not run")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: the notebook is not run")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: the notebook is not run")
    pytest.importorskip("fhec", reason="fhec is not installed: the notebook is not run")
    monkeypatch.setenv("MNIST_DIR", str(small_mnist))
    notebook = nbformat.read(NOTEBOOK, 4)
    resources = {"metadata": {"path": str(small_mnist)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    printed = ["".join(o.get("text", "") for o in cell.get("outputs", [])) for cell in notebook.cells if cell.cell_type == "code"]
    assert float(re.search(r"fine-tuned: ([\d.]+)%", "\n".join(printed))[1]) > 90
    assert "[0 1 2 3] true: [0 1 2 3]" in printed[-2], printed[-2]
    assert "agreement=1.0" in printed[-1], printed[-1]
