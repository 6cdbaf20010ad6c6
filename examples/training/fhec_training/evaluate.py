"""Accuracy of a network as it will run encrypted: evaluation mode, no clipping.

`python -m fhec_training evaluate model.onnx --data mnist --data-dir DIR` measures exported files on the test set; several
files are also measured as an ensemble, which averages logits as the encrypted one does (paper §5.3).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

from fhec_training.data import DATASETS, Description, Split, load
from fhec_training.modes import evaluating


@torch.no_grad()
def logits(model: nn.Module, data: Split, description: Description, batch_size: int = 250) -> Tensor:
    with evaluating(model):
        return torch.cat([model(_prepared(images, description)) for images in data.images.split(batch_size)])


def accuracy(model: nn.Module, data: Split, description: Description) -> float:
    """Fraction of images whose largest logit is the right one."""
    return (logits(model, data, description).argmax(1) == data.labels).float().mean().item()


def _prepared(images: Tensor, description: Description) -> Tensor:
    return description.normalize(images).contiguous(memory_format=torch.channels_last)


def onnx_logits(path: Path, images: Tensor) -> Tensor:
    """Logits of an exported network for prepared images, by an independent runtime, one image at a time."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, settings)
    (name,) = (value.name for value in session.get_inputs())
    return torch.cat([torch.from_numpy(session.run(None, {name: image[None].numpy()})[0]) for image in images])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("fhec-training evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onnx", type=Path, nargs="+", help="one model, or the members of an ensemble")
    parser.add_argument("--data", choices=DATASETS, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    options = parser.parse_args(arguments)
    split = load(options.data, options.data_dir, "test")
    images = DATASETS[options.data].normalize(split.images)
    members = [onnx_logits(path, images) for path in options.onnx]
    rows = list(zip(map(str, options.onnx), members))
    if len(members) > 1:
        rows.append((f"mean logits of {len(members)} members", torch.stack(members).mean(0)))
    for name, values in rows:
        print(f"{(values.argmax(1) == split.labels).float().mean().item():.2%}  {name}")
