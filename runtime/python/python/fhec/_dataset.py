"""Encrypted evaluations of whole data sets."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from fhec import _progress
from fhec._errors import DataError, ScoresWarning
from fhec._fhec import Client, Program, Server
from fhec._results import DatasetRun

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def run_dataset(
    program: Program,
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    insecure: bool = False,
    progress: _progress.Progress = None,
) -> DatasetRun:
    """Evaluates every sample encrypted, under fresh keys, and compares it with the program in the clear.

    This takes client and server of one process; it is for measuring. Whoever needs accuracy alone gets it a thousand times
    faster from `Program.simulate`.

    Args:
        program: what to evaluate.
        x: samples with a sample axis, as `Client.encrypt` takes them.
        y: their true classes, if they are known.
        memory, threads, insecure: as for `Server`.
        progress: True for a bar, or a function of (fraction, text).
    """
    samples = np.asarray(x)
    if samples.ndim < 2:
        raise DataError(
            f"samples: an array of shape {list(samples.shape)} has no sample axis", "shape", "give [samples, channels, height, width]"
        )
    truth = None if y is None else np.asarray(y)
    if truth is not None and truth.shape != (len(samples),):
        raise DataError(f"{truth.shape} labels for {len(samples)} samples", "label-count", "give one label for each sample")
    clear = program.predict(samples)
    if len(clear) != len(samples):
        raise DataError(
            f"samples: an array of shape {list(samples.shape)} is one sample", "shape", "give [samples, channels, height, width]"
        )
    # Of several outputs the first has the classes.
    outputs = program.interface.outputs
    n_classes = int(np.prod(outputs[0][1])) if outputs else program.n_scores
    shown = _progress.start(progress)
    try:
        client = Client(program.interface, insecure=insecure)
        rows: list[dict[str, Any]] = []
        with Server(program, memory=memory, threads=threads, insecure=insecure) as server:
            server.add_keys(client.eval_keys())
            for i, sample in enumerate(samples):
                if shown is not None:
                    shown(i / len(samples), f"sample {i + 1} of {len(samples)}")
                request = client.encrypt(sample)
                began = time.perf_counter()
                result = server.run(request)
                seconds = time.perf_counter() - began
                with warnings.catch_warnings():
                    # Nothing of them leaves this function but a class and an error.
                    warnings.simplefilter("ignore", ScoresWarning)
                    scores = client.decrypt(result, raw=True)[0]
                rows.append(
                    {
                        "index": i,
                        "class": int(np.argmax(scores[:n_classes])),
                        "clear_class": int(np.argmax(clear[i][:n_classes])),
                        "true_class": None if truth is None else int(truth[i]),
                        "max_abs_error": float(np.abs(scores - clear[i]).max()),
                        "seconds": seconds,
                    }
                )
    finally:
        _progress.end(shown)

    def share(a: str, b: str) -> float:
        return sum(bool(row[a] == row[b]) for row in rows) / max(len(rows), 1)

    return DatasetRun(
        rows=tuple(rows),
        accuracy=None if truth is None else share("class", "true_class"),
        clear_accuracy=None if truth is None else share("clear_class", "true_class"),
        agreement=share("class", "clear_class"),
        max_abs_error=max((row["max_abs_error"] for row in rows), default=0.0),
        seconds=sum(row["seconds"] for row in rows) / max(len(rows), 1),
    )
