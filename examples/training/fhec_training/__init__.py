"""Training of convolutional networks whose activations are polynomials (paper §3), for `fhec`.

The public names, each loaded when it is first used, so that `fit` needs no torch:

- `fit`: integer coefficients of the polynomial that stands for an activation
- `convert`: replaces the activations of a network
- `penalty`: what to add to a loss so that their inputs stay in range
- `fine_tune`: the training after a conversion; `accuracy` measures before and after
- `Noise`: the noise of encryption, to train for
- `export`: writes the network as ONNX for `fhec build`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fhec_training.activation import penalty
    from fhec_training.conversion import convert
    from fhec_training.integer_fit import fit
    from fhec_training.noise import Noise
    from fhec_training.onnx_export import export
    from fhec_training.tuning import accuracy, fine_tune

__all__ = ["Noise", "accuracy", "convert", "export", "fine_tune", "fit", "penalty"]

_HOMES = {
    "Noise": "noise",
    "accuracy": "tuning",
    "convert": "conversion",
    "export": "onnx_export",
    "fine_tune": "tuning",
    "fit": "integer_fit",
    "penalty": "activation",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"fhec_training.{name} needs {error.name}: pip install 'fhec-training[torch]'") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
