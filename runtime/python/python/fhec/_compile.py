"""Models to programs: what may be given, and the options by name."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from fhec import _fhec
from fhec._arrays import as_file
from fhec._errors import doubt
from fhec._progress import Progress
from fhec._results import Levels, Report, Simulation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# A path, the bytes of an ONNX file, an onnx.ModelProto, a pair of a torch module and an example; a list is an ensemble.
Model = Any
Samples = Union["ArrayLike", str, "os.PathLike[str]"]


def compile(
    model: Model,
    *,
    calibrate: Samples | Sequence[str] | None = None,
    memory: int | str = "16GiB",
    layout: str = "auto",
    sublevels: int = 2,
    precision: float | None = None,
    headroom: float | None = None,
    log_n: int | None = None,
    mean: float | Sequence[float] = (),
    std: float | Sequence[float] = (),
    labels: Sequence[str] = (),
    relu: str | None = None,
    approximate: bool = False,
    outputs: Sequence[str] = (),
    like: _fhec.Program | str | os.PathLike[str] | None = None,
    cluster: str | None = None,
    centroids: int = 64,
    fuse: bool = True,
    redistribute: bool = True,
    check: bool = True,
    toy: bool = False,
    insecure: bool = False,
    progress: Progress = None,
) -> _fhec.Program:
    """Compiles a model to a program over encrypted data, as `fhec build` does.

    Args:
        model: the path of an ONNX file, its bytes, an `onnx.ModelProto`, or a pair of a `torch.nn.Module` and an example
            input (needs the extra `torch`). A list of models of one architecture becomes an ensemble whose scores are averaged.
        calibrate: samples that values are measured on and whose classes are kept: an array, a file, a folder of pictures, a
            list of files, or a dictionary of arrays for a model of several inputs. Without it pictures are made up.
        memory: bytes that keys, plaintexts and ciphertexts of one evaluation may take.
        layout: "auto", "hw" (a channel per ciphertext) or "packed".
        sublevels: multiplications per level.
        precision: bits between the largest score and the deviation of its error; by default 6 to 9.
        headroom: bits that every value keeps free below half its modulus.
        log_n: log2 of the ring degree, instead of the smallest that fits.
        mean, std: normalization of pixels from 0 to 1, where the model does not tell it.
        labels: names of the classes, where the model does not tell them.
        relu: "quadratic", or "quadratic,c=2,b=10", replaces ReLU by a polynomial; expect to retrain.
        approximate: replace functions that are no polynomials by polynomials fitted to what the samples of `calibrate` lead to.
        outputs: names of the model's outputs to compute; by default all.
        like: a program whose parameters, layout and keys are taken, so that clients keep theirs.
        cluster: "full" or "slice" replaces weights by the entries of codebooks with `centroids` entries.
        fuse, redistribute: switch passes off.
        check: end with an encrypted evaluation under throw-away keys, where that takes a few seconds.
        toy: use a ring that protects nothing, to try things out.
        insecure: accept parameters below 128 bits of security.
        progress: True for a bar, or a function of (fraction, text).

    Raises:
        ModelError: if the model cannot be encrypted; names every node, why, and what to do.

    Warns:
        DoubtWarning: if noise changes classes of the samples that it was calibrated on, or values come near their modulus.
    """
    given = {name: value for name, value in locals().items() if name not in ("model", "calibrate", "like", "progress")}
    models, calibration = _models(model), _calibration(calibrate)
    program = _fhec.compile(models, calibration, _options(given), _program(like), progress)
    for text in _doubts(program.build_report or {}):
        doubt(text, depth=2)
    return program


def _doubts(report: dict[str, Any]) -> Iterator[str]:
    """What is wrong on the samples that the program was calibrated on."""
    check = report.get("check") or {}
    n, what = check.get("samples"), "calibration samples" if check.get("is_real") else "made-up pictures"
    if check.get("changed_classes"):
        yield f"simulated noise changes the class of {check['changed_classes']} of {n} {what}: ask for more precision=, or calibrate="
    if check.get("near_samples"):
        yield (
            f"{check['near_samples']} of {n} {what} come within one bit of a modulus, {check['wrapped_samples']} of them wrap around: "
            "ask for more headroom="
        )


def report(
    model: Model,
    *,
    calibrate: Samples | Sequence[str] | None = None,
    like: _fhec.Program | str | os.PathLike[str] | None = None,
    progress: Progress = None,
    **options: Any,
) -> Report:
    """The page of `fhec report` about a model, with the passes that led to its program.

    Takes the options of `compile`. About a program that is there already: `Program.report`.
    """
    if isinstance(model, _fhec.Program):
        return model.report()
    models, calibration = _models(model), _calibration(calibrate)
    return Report(_fhec.report(models, calibration, _options({**_DEFAULTS, **options}), _program(like), progress))


def levels(model: Model, *, relu: str | None = None, degree: int | None = None, progress: Progress = None) -> Levels:
    """What a model costs in levels, pass by pass, as `fhec levels` says.

    Args:
        model: as for `compile`; a list is several models, each for itself.
        relu: as for `compile`.
        degree: what the levels were if the activations had this degree.
        progress: True for a bar, or a function of (fraction, text).
    """
    data, text = _fhec.levels(_models(model), relu, degree, progress)
    return Levels(json.loads(data), text)


def simulate(
    program: _fhec.Program | str | os.PathLike[str],
    x: Samples,
    y: Samples | None = None,
    *,
    resize: bool = False,
    seed: int = 1,
    progress: Progress = None,
) -> Simulation:
    """`Program.simulate` for a program, or for the path of one."""
    loaded = program if isinstance(program, _fhec.Program) else _fhec.Program.load(program)
    return loaded.simulate(x, y, resize=resize, seed=seed, progress=progress)


# What the compiler reads as options, with what it is where nothing is said.
_DEFAULTS: dict[str, Any] = {
    name: value for name, value in (compile.__kwdefaults__ or {}).items() if name not in ("calibrate", "like", "progress")
}


def _program(given: _fhec.Program | str | os.PathLike[str] | None) -> _fhec.Program | None:
    return given if given is None or isinstance(given, _fhec.Program) else _fhec.Program.load(given)


def _options(given: dict[str, Any]) -> str:
    """The options as the compiler reads them."""
    unknown = sorted(set(given) - set(_DEFAULTS))
    if unknown:
        raise TypeError(f"compile has no option {', '.join(unknown)}")
    options = dict(given)
    options["memory"] = _fhec.parse_bytes(options["memory"])
    for name in ("mean", "std"):
        options[name] = [float(value) for value in np.atleast_1d(np.asarray(options[name], dtype=float))]
    for name in ("labels", "outputs"):
        options[name] = [str(value) for value in options[name]]
    return json.dumps(options)


def _models(model: Model) -> list[str | tuple[str, bytes]]:
    return [_model(one) for one in model] if isinstance(model, list) else [_model(model)]


def _model(model: Model) -> str | tuple[str, bytes]:
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, (bytes, bytearray)):
        return ("model", bytes(model))
    if hasattr(model, "SerializeToString"):
        return (getattr(getattr(model, "graph", None), "name", "") or "model", model.SerializeToString())
    if isinstance(model, tuple) and len(model) == 2:
        from fhec.torch import export

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            export(model[0], model[1], path)
            return (type(model[0]).__name__, path.read_bytes())
    raise TypeError(
        f"a model is a path, bytes, an onnx.ModelProto or a pair of a torch module and an example, not {type(model).__name__}"
    )


def _calibration(calibrate: Any) -> list[str] | tuple[str, bytes] | None:
    """Paths, or an array as the file that it would be."""
    if calibrate is None:
        return None
    if isinstance(calibrate, (str, os.PathLike)):
        return [os.fspath(calibrate)]
    if isinstance(calibrate, (list, tuple)) and calibrate and all(isinstance(p, (str, os.PathLike)) for p in calibrate):
        return [os.fspath(p) for p in calibrate]
    return as_file(calibrate, "calibration")
