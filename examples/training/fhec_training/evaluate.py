"""Accuracy of a network as it will run encrypted: evaluation mode, no clipping."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fhec_training.data import Description, Split


@torch.no_grad()
def logits(model: nn.Module, data: Split, description: Description, batch_size: int = 250) -> Tensor:
    was_training = model.training
    model.eval()
    try:
        parts = [model(_prepared(images, description)) for images in data.images.split(batch_size)]
    finally:
        model.train(was_training)
    return torch.cat(parts)


def accuracy(model: nn.Module, data: Split, description: Description) -> float:
    """Fraction of images whose largest logit is the right one."""
    return (logits(model, data, description).argmax(1) == data.labels).float().mean().item()


def _prepared(images: Tensor, description: Description) -> Tensor:
    return description.normalize(images).contiguous(memory_format=torch.channels_last)
