"""Arrays as the files that they would be: what the compiler reads, and what a model of several inputs takes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from fhec._errors import DataError

_DTYPES = ["uint8", "float32", "float64"]


def as_file(samples: Any, what: str) -> tuple[str, bytes]:
    """The name and the bytes of a file with an array, or with one for each input of a model; `what` is for messages."""
    if isinstance(samples, Mapping):
        return (f"{what}.npz", archive(samples, what))
    return (f"{what}.npy", _npy(samples, what))


def archive(arrays: Mapping[str, Any], what: str = "samples") -> bytes:
    """The bytes of an .npz file; names may be any."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as found:
        for name, array in arrays.items():
            found.writestr(f"{name}.npy", _npy(array, f"{what}: {name}"))
    return file.getvalue()


def _npy(given: Any, what: str) -> bytes:
    array = np.asarray(given)
    if array.dtype.name not in _DTYPES:
        raise DataError(
            f"{what}: an array of {array.dtype.name}, but uint8, float32 or float64 is needed",
            "dtype",
            "pictures: .astype(numpy.uint8); inputs that are normalized already: .astype(numpy.float32)",
            {"found": array.dtype.name, "wanted": _DTYPES},
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise DataError(f"{what}: value {index} is {array.ravel()[index]}", "not-finite", "replace what is no number")
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")))
    return file.getvalue()
