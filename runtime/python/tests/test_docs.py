"""What the documents show runs."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re

import pytest
from conftest import ROOT

import fhec


@pytest.mark.parametrize("module", ["_compile", "_results", "_progress", "_dataset"])
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


def test_the_first_notebook_runs(tmp_path, monkeypatch):
    cells = json.loads((ROOT / "examples/notebooks/first-prediction.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code
    for name in ("onnx-models", "examples"):
        os.symlink(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for source in code:
        exec(compile(source, "first-prediction.ipynb", "exec"), names)
    assert names["scores"].argmax(axis=1).tolist() == names["y"].tolist()  # type: ignore[attr-defined]
