"""A checkpoint is one file that holds everything a run needs to go on, or an export to begin."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fhec_training.conversion import convert
from fhec_training.models import build


@dataclass(frozen=True)
class Recipe:
    """What decides the network; stored with its weights."""

    model: str
    data: str
    in_channels: int
    n_classes: int
    width: float = 1.0
    activation: str = "poly"
    degree: int = 2
    c: float = 2.0
    bits: int = 10

    def network(self) -> nn.Module:
        network = build(self.model, self.in_channels, self.n_classes, self.width)
        if self.activation == "poly":
            convert(network, degree=self.degree, c=self.c, bits=self.bits)
        return network.to(memory_format=torch.channels_last)


def save(path: Path, recipe: Recipe, network: nn.Module, state: dict[str, Any]) -> None:
    """Writes atomically, so an interrupted run keeps its last good checkpoint."""
    temporary = path.with_suffix(".tmp")
    torch.save({"recipe": asdict(recipe), "network": network.state_dict(), **state}, temporary)
    os.replace(temporary, path)


def load(path: Path) -> tuple[Recipe, nn.Module, dict[str, Any]]:
    """The recipe, the network with its weights, and the rest of the state."""
    state = torch.load(path, weights_only=True)
    recipe = Recipe(**state.pop("recipe"))
    network = recipe.network()
    network.load_state_dict(state.pop("network"))
    return recipe, network, state


def weights(path: Path) -> dict[str, Tensor]:
    """The weights in a checkpoint, or in an exported network, whose initializers have the names of the parameters."""
    if path.suffix != ".onnx":
        return torch.load(path, weights_only=True)["network"]
    import onnx
    from onnx import numpy_helper

    return {tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy()) for tensor in onnx.load(path).graph.initializer}


def start(network: nn.Module, path: Path) -> None:
    """Gives `network` the weights of a file, which must have all of them in the same shapes."""
    found = weights(path)
    wanted = {name: tensor for name, tensor in network.state_dict().items() if not name.endswith("num_batches_tracked")}
    for name, tensor in wanted.items():
        if name not in found:
            raise SystemExit(f"{path} has no weights {name}: it is another network")
        if found[name].shape != tensor.shape:
            raise SystemExit(f"{name} has shape {list(found[name].shape)} in {path}, and {list(tensor.shape)} in this network")
    network.load_state_dict({name: found[name] for name in wanted}, strict=False)
