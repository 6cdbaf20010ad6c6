"""PyTorch networks: made polynomial, trained to stay in range, and exported.

These are the names of the package `fhec-training` (examples/training in the repository), which the extra `torch` asks for:

- `convert`: replaces the activations of a network by polynomials
- `fine_tune`: the training after a conversion; `penalty` is what keeps inputs in range, `Noise` what encryption adds
- `accuracy`: measures before and after
- `export`: writes ONNX with labels and normalization; `fhec.compile((module, example))` does it by itself
- `fit`: the polynomial that stands for an activation
"""

from __future__ import annotations

from typing import Any

# What they are is told by the package itself, where it is installed.
Noise: Any
accuracy: Any
convert: Any
export: Any
fine_tune: Any
fit: Any
penalty: Any

__all__ = ["Noise", "accuracy", "convert", "export", "fine_tune", "fit", "penalty"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import fhec_training  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ModuleNotFoundError as error:
        raise ImportError(
            f"fhec.torch.{name} needs fhec-training: pip install './examples/training[torch]' in the repository, or 'fhec[torch]'"
        ) from error
    return getattr(fhec_training, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
