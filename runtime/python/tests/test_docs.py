"""What the documents show runs."""

from __future__ import annotations

import doctest
import importlib
import os
import re

import pytest
from conftest import ROOT

import fhec


@pytest.mark.parametrize("module", ["_compile", "_results", "_progress", "_dataset", "_errors", "_http"])
def test_doctests(module):
    found = doctest.testmod(importlib.import_module(f"fhec.{module}"))
    assert found.failed == 0


def test_everything_public_is_documented():
    for name in fhec.__all__:
        value = getattr(fhec, name)
        assert value.__doc__, name
        if isinstance(value, type) and value.__module__ == "fhec":
            for member, what in vars(value).items():
                if not member.startswith("_"):
                    assert what.__doc__, f"{name}.{member}"


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_the_python_page_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "python.md").read_text()
    shown = [block for block in _blocks(text) if not block.startswith("# not run")]
    assert shown
    for name in ("onnx-models", "examples"):
        os.symlink(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in shown:
        exec(compile(block, "docs/python.md", "exec"), names)


def test_the_first_notebook_runs(tmp_path):
    reason = "needed to run notebooks, and not installed"
    nbclient, nbformat = pytest.importorskip("nbclient", reason=reason), pytest.importorskip("nbformat", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    notebook = nbformat.read(ROOT / "examples/notebooks/first-prediction.ipynb", 4)
    for name in ("onnx-models", "examples"):
        os.symlink(ROOT / name, tmp_path / name)
    for cell in notebook.cells:
        cell["outputs"] = []
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    shown = ["".join(out.get("data", {}).get("text/plain", "") for out in cell.outputs) for cell in notebook.cells]
    assert "([3, 1, 4, 5], array([3, 1, 4, 5]))" in shown, shown
