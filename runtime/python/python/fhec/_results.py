"""What calls give back: plain data that shows itself well, in a terminal and in a notebook."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from fhec._fhec import show_bytes, write_page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fhec._fhec import Program


@dataclass(frozen=True)
class LayerLoss:
    """Precision of a layer's result."""

    name: str
    bits_left: float
    bits_lost: float


@dataclass(frozen=True, eq=False)
class Answer:
    """What a decrypted result says of one sample: `Client.decrypt` gives them."""

    #: The class by name, or its position where classes have no names; None if the model computes a number, which is a score.
    label: str | None
    #: Its position in the scores.
    index: int | None
    #: Softmax of the rounded scores, rounded down to tenths; None for a single score.
    confidence: float | None
    #: Whether the noise may have exchanged it with another class.
    is_undecided: bool
    #: What is wrong with scores, in words; empty where nothing is.
    doubts: tuple[str, ...]
    #: Scores, rounded to the digits that mean something; None unless they were asked for.
    scores: NDArray[np.float64] | None = field(repr=False)
    #: Outputs of the model by name, where they are more or other than the scores: lists of names of classes, and arrays if
    #: scores were asked for.
    outputs: dict[str, NDArray[np.float64] | list[str]] = field(repr=False)


@dataclass(frozen=True)
class Simulation:
    """What the noise of encryption does to a data set."""

    samples: int
    #: Share of samples with the true class, with noise and without; None where classes are not known.
    accuracy: float | None
    exact_accuracy: float | None
    #: Share of samples with the class of the exact evaluation.
    agreement: float
    changed_classes: int
    max_abs_error: float
    rms_error: float
    max_abs_result: float
    #: Samples with a value within a bit of its modulus, and samples with one beyond it, whose scores are wrong.
    near_samples: int
    wrapped_samples: int
    layers: tuple[LayerLoss, ...] = field(repr=False, default=())

    def _repr_html_(self) -> str:
        rows = [(f.name.replace("_", " "), getattr(self, f.name)) for f in fields(self) if f.name != "layers"]
        return _table(("", "value"), [(name, _number(value)) for name, value in rows])


def simulation(data: dict[str, Any]) -> Simulation:
    """From the figures of `fhec simulate --format json`."""
    known = {f.name: data[f.name] for f in fields(Simulation) if f.name != "layers"}
    return Simulation(**known, layers=tuple(LayerLoss(**layer) for layer in data["layers"]))


class Levels:
    """What models cost in levels.

    `levels` has the levels of the first model by configuration: none, F (fusing), R (redistribution), FR, FRT (with tower reuse).
    `models` has everything that `fhec levels --format json` tells.
    """

    def __init__(self, models: list[dict[str, Any]], text: str) -> None:
        self.models = models
        self._text = text

    @property
    def levels(self) -> dict[str, int]:
        return dict(self.models[0]["levels"])

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        head = ("model", *self.models[0]["levels"])
        return _table(head, [(m["model"], *(str(n) for n in m["levels"].values())) for m in self.models])


class Report:
    """A page about a program: one HTML document without references to anything else."""

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page; a file of another kind is not replaced."""
        write_page(path, self.html)

    def __repr__(self) -> str:
        return f"<fhec.Report: {len(self.html)} characters; save(path) writes it>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html, quote=True)}" sandbox="allow-scripts" '
            'style="width:100%;height:720px;border:0" title="fhec report"></iframe>'
        )


@dataclass(frozen=True)
class DatasetRun:
    """Encrypted evaluations of a data set, as a table: a row for every sample."""

    #: For every sample: index, class, clear_class, true_class (or None), max_abs_error, seconds.
    rows: tuple[dict[str, Any], ...] = field(repr=False)
    #: Share of samples with the true class; None where classes are not known.
    accuracy: float | None
    clear_accuracy: float | None
    #: Share of samples with the class that the program gives in the clear.
    agreement: float
    max_abs_error: float
    #: Seconds of an evaluation, on average.
    seconds: float

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(list(self.rows)).set_index("index")

    def _repr_html_(self) -> str:
        figures = [(f.name.replace("_", " "), _number(getattr(self, f.name))) for f in fields(self) if f.name != "rows"]
        shown = [tuple(_number(value) for value in row.values()) for row in self.rows[:20]]
        return _table(("", "value"), figures) + _table(tuple(self.rows[0]) if self.rows else (), shown)


def program_html(program: Program) -> str:
    """A program in a notebook: its figures, and its levels as a staircase."""
    margin = program.security_margin_bits
    if margin is None:
        security = "<b>none: a toy ring, protects nothing</b>"
    elif margin < 0:
        security = f"<b>below 128 bits: {-margin:.0f} bits beyond the bound</b>"
    else:
        security = f"128 bits, {margin:.0f} bits below the bound"
    bits = program.precision_bits
    rows = [
        ("levels", str(program.levels)),
        ("ring degree", f"{program.n:,}"),
        ("security", security),
        ("core-seconds", f"{program.seconds:.1f}, predicted"),
        ("keys", f"{program.n_keys}, {show_bytes(program.key_bytes)}"),
        ("plaintexts", f"{show_bytes(program.plaintext_bytes)} if all are kept"),
        ("error of a score", f"at most {program.max_abs_error:.2g}" + (f", {bits:.1f} bits below the largest" if bits else "")),
    ]
    cells = "".join(f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{value}</td></tr>" for name, value in rows)
    return f"<b>{html.escape(program.name)}</b><table>{cells}</table>{_staircase(program.layers)}"


def _staircase(layers: list[dict[str, Any]]) -> str:
    """Levels over layers; the area of a step is what its layer has left."""
    if not layers:
        return ""
    top, width, height = max(layer["level"] for layer in layers) + 1, 640, 120
    step = width / len(layers)
    bars = []
    for i, layer in enumerate(layers):
        tall = height * (layer["level"] + 1) / top
        tip = html.escape(f"{layer['name']}: {layer['at']}, {layer['seconds']:.2f} s")
        bars.append(
            f'<rect x="{i * step:.1f}" y="{height - tall:.1f}" width="{max(step - 1, 0.5):.1f}" height="{tall:.1f}" '
            f'fill="#4c78a8"><title>{tip}</title></rect>'
        )
    return f'<svg width="{width}" height="{height}" role="img" aria-label="levels by layer">{"".join(bars)}</svg>'


def _number(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
