"""Writes a trained network as ONNX, for one image at a time.

The file carries what `fhec build` needs to make pictures into inputs and outputs into words, as JSON in the model's
metadata: `fhec.labels` (list of names), `fhec.mean` and `fhec.std` (one number per channel). An input is
(pixel/255 - mean) / std. Polynomials are written out as multiplications and additions. Batch normalizations stay nodes of
their own: fusing them is the compiler's business.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import onnx
import torch
from onnxscript import optimizer
from torch import Tensor, nn

from fhec_training import checkpoint
from fhec_training.activation import penalty
from fhec_training.data import DATASETS, Description

OPSET = 18


def export(
    model: nn.Module,
    example: Tensor | Sequence[int] | Description,
    path: str | os.PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> None:
    """Writes `model` in evaluation mode, and leaves it in that.

    `example` tells the shape of an input: a batch, (channels, height, width), or the `Description` of a data set, which
    has the labels, the mean and the deviation as well. Numbers out of range or of the wrong count are refused.
    """
    if isinstance(example, Description):
        labels, mean, std = labels or example.labels, mean or example.mean, std or example.std
        example = (len(example.mean), example.size, example.size)
    shape = _input_shape(example)
    penalty(model)  # What a pass in training mode left has a graph, which cannot be copied.
    network = copy.deepcopy(model.eval()).cpu().to(memory_format=torch.contiguous_format)
    image = torch.zeros(1, *shape)
    with torch.no_grad():
        scores = network(image)
    if not isinstance(scores, Tensor) or scores.ndim != 2:
        found = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(f"the network must give one tensor of scores, [1, classes], but gives {found}")
    metadata = _metadata(shape, scores.shape[1], labels, mean, std)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network,
            (image,),
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
    proto = program.model_proto
    for name, value in metadata.items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = f"fhec.{name}", json.dumps(value)
    strip(proto)
    onnx.checker.check_model(proto, full_check=True)
    temporary = Path(path).with_suffix(".tmp")
    temporary.write_bytes(proto.SerializeToString(deterministic=True))
    os.replace(temporary, path)


def _input_shape(example: Tensor | Sequence[int]) -> tuple[int, ...]:
    """Channels, height and width; or the length of a vector."""
    if isinstance(example, Tensor):
        if example.ndim not in (2, 4):
            raise ValueError(f"the example must be a batch, [n, channels, height, width], but has shape {list(example.shape)}")
        return tuple(example.shape[1:])
    shape = tuple(int(extent) for extent in example)
    shape = shape[1:] if len(shape) == 4 else shape
    if len(shape) not in (1, 3) or min(shape) < 1:
        raise ValueError(f"the shape of an input is (channels, height, width), not {tuple(example)}")
    return shape


def _metadata(
    shape: tuple[int, ...],
    n_scores: int,
    labels: Sequence[str] | None,
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
) -> dict[str, list[str] | list[float]]:
    """What goes into the file, checked: the importer leaves out what does not fit, and nobody would notice."""
    metadata: dict[str, list[str] | list[float]] = {}
    if labels is not None:
        if len(labels) != n_scores:
            raise ValueError(f"there are {len(labels)} labels for {n_scores} scores")
        metadata["labels"] = [str(label) for label in labels]
    if (mean is None) != (std is None):
        raise ValueError("mean and std come together: an input is (pixel/255 - mean) / std")
    if mean is not None and std is not None:
        mean, std = [float(v) for v in mean], [float(v) for v in std]
        if {len(mean), len(std)} - {1, shape[0]}:
            raise ValueError(f"the input has {shape[0]} channels, but there are {len(mean)} means and {len(std)} deviations")
        if not all(v > 0 for v in std):
            raise ValueError(f"deviations are positive, not {std}")
        metadata |= {"mean": mean, "std": std}
    return metadata


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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("fhec-training export", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("onnx", type=Path)
    options = parser.parse_args(arguments)
    recipe, network, _ = checkpoint.load(options.checkpoint)
    export(network, DATASETS[recipe.data], options.onnx)
    print(hashlib.sha256(options.onnx.read_bytes()).hexdigest(), options.onnx.stat().st_size, options.onnx)

