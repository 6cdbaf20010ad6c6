"""Writes a trained network as ONNX: `python -m fhec_training.export RUN/checkpoint.pt model.onnx`.

The file carries what `fhec build` needs to make pictures into inputs and outputs into words, as JSON in the model's
metadata: `fhec.labels` (list of names), `fhec.mean` and `fhec.std` (one number per channel). An input is
(pixel/255 - mean) / std. Batch normalizations stay nodes of their own: fusing them is the compiler's business.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import warnings
from pathlib import Path

import onnx
import torch
from onnxscript import optimizer
from torch import nn

from fhec_training import checkpoint
from fhec_training.data import DATASETS, Description

OPSET = 18


def export(network: nn.Module, description: Description, path: Path) -> None:
    """Writes `network` in evaluation mode for one image at a time."""
    channels, size = len(description.mean), description.size
    network = network.eval().to(memory_format=torch.contiguous_format)
    temporary = path.with_suffix(".tmp")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network,
            (torch.zeros(1, channels, size, size),),
            input_names=["image"],
            output_names=["logits"],
            opset_version=OPSET,
            dynamo=True,
            optimize=False,
            verbose=False,
        )
    # Only constants are folded: the exporter's own optimizer would also fuse batch normalizations.
    optimizer.fold_constants(program.model)
    optimizer.remove_unused_nodes(program.model)
    model = program.model_proto
    for name, value in (("labels", description.labels), ("mean", description.mean), ("std", description.std)):
        entry = model.metadata_props.add()
        entry.key, entry.value = f"fhec.{name}", json.dumps(value)
    strip(model)
    onnx.checker.check_model(model, full_check=True)
    temporary.write_bytes(model.SerializeToString(deterministic=True))
    os.replace(temporary, path)


def strip(model: onnx.ModelProto) -> None:
    """Removes what describes the machine of the export and not the network: stack traces and paths."""
    model.graph.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        value.ClearField("metadata_props")
        value.ClearField("doc_string")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("onnx", type=Path)
    options = parser.parse_args()
    recipe, network, _ = checkpoint.load(options.checkpoint)
    export(network, DATASETS[recipe.data], options.onnx)
    print(hashlib.sha256(options.onnx.read_bytes()).hexdigest(), options.onnx.stat().st_size, options.onnx)


if __name__ == "__main__":
    main()
