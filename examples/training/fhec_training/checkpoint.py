"""A checkpoint is one file that holds everything a run needs to go on, or an export to begin."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

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
