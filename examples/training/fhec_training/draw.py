"""Draws handwritten-looking digits from strokes: `python -m fhec_training draw OUT_DIR`.

The pictures are 28x28 grey PNGs, white ink on black like MNIST, but they come from no data set: every digit is a few
curves through the points below, written by several hands that differ in slant, pen, proportions and shapes.
Writes `<hand>-<digit>.png` and `labels.csv`.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

SIZE, BOX = 28, 20
"""Side of the picture, and of the square inside it that the ink fills."""

Stroke = list[tuple[float, float]]
"""Points (x right, y down) in the unit square that the pen passes through, smoothly."""

DIGITS: dict[int, list[Stroke]] = {
    0: [[(0.55, 0.0), (0.2, 0.2), (0.12, 0.6), (0.4, 1.0), (0.75, 0.82), (0.85, 0.4), (0.68, 0.06), (0.5, 0.01)]],
    1: [[(0.5, 0.0), (0.5, 0.5), (0.5, 1.0)]],
    2: [[(0.15, 0.25), (0.35, 0.02), (0.7, 0.06), (0.76, 0.34), (0.5, 0.66), (0.14, 0.98)], [(0.14, 0.98), (0.5, 0.95), (0.9, 0.96)]],
    3: [[(0.18, 0.12), (0.45, 0.0), (0.75, 0.14), (0.7, 0.36), (0.42, 0.47)], [(0.42, 0.47), (0.75, 0.56), (0.8, 0.82), (0.5, 1.0), (0.15, 0.9)]],
    4: [[(0.3, 0.0), (0.22, 0.3), (0.14, 0.56)], [(0.14, 0.56), (0.5, 0.57), (0.9, 0.53)], [(0.74, 0.05), (0.7, 0.5), (0.66, 1.0)]],
    5: [[(0.85, 0.02), (0.55, 0.03), (0.28, 0.04)], [(0.28, 0.04), (0.25, 0.22), (0.22, 0.42)], [(0.22, 0.42), (0.6, 0.38), (0.82, 0.64), (0.6, 0.94), (0.15, 0.95)]],
    6: [[(0.7, 0.0), (0.38, 0.22), (0.18, 0.62), (0.34, 0.97), (0.68, 0.92), (0.76, 0.66), (0.52, 0.5), (0.22, 0.68)]],
    7: [[(0.12, 0.06), (0.5, 0.05), (0.86, 0.03)], [(0.86, 0.03), (0.6, 0.45), (0.42, 1.0)]],
    8: [[(0.72, 0.14), (0.45, 0.0), (0.24, 0.18), (0.46, 0.44), (0.74, 0.72), (0.5, 1.0), (0.22, 0.78), (0.5, 0.46), (0.72, 0.18)]],
    9: [[(0.74, 0.2), (0.48, 0.02), (0.22, 0.22), (0.38, 0.48), (0.7, 0.36), (0.75, 0.16)], [(0.75, 0.16), (0.72, 0.55), (0.6, 1.0)]],
}

FLAGGED_ONE: list[Stroke] = [[(0.32, 0.2), (0.44, 0.1), (0.54, 0.0)], [(0.54, 0.0), (0.54, 0.5), (0.54, 1.0)]]
BARRED_SEVEN: list[Stroke] = [*DIGITS[7], [(0.34, 0.52), (0.52, 0.5), (0.74, 0.48)]]
LOOPED_TWO: list[Stroke] = [[(0.2, 0.2), (0.45, 0.0), (0.74, 0.2), (0.55, 0.62), (0.26, 0.94), (0.14, 0.84), (0.36, 0.8), (0.62, 0.96), (0.92, 0.9)]]
CLOSED_FOUR: list[Stroke] = [[(0.62, 0.0), (0.4, 0.32), (0.12, 0.66)], [(0.12, 0.66), (0.5, 0.66), (0.92, 0.64)], [(0.64, 0.0), (0.64, 0.5), (0.64, 1.0)]]
CURVED_NINE: list[Stroke] = [[(0.74, 0.2), (0.48, 0.02), (0.22, 0.22), (0.38, 0.48), (0.7, 0.36), (0.75, 0.16)], [(0.75, 0.16), (0.76, 0.6), (0.62, 0.92), (0.24, 0.96)]]


@dataclass(frozen=True)
class Hand:
    """One person's writing; lengths are in pixels, `slant` is dx per dy, `wobble` in unit-square lengths."""

    pen: float = 1.1
    slant: float = 0.0
    width: float = 0.8
    wobble: float = 0.0
    shapes: dict[int, list[Stroke]] = field(default_factory=dict)


HANDS = {
    "plain": Hand(),
    "leaning": Hand(pen=0.95, slant=0.25, width=0.75, wobble=0.012, shapes={9: CURVED_NINE}),
    "broad": Hand(pen=1.5, slant=0.08, width=0.95, wobble=0.012, shapes={4: CLOSED_FOUR, 2: LOOPED_TWO}),
    "hasty": Hand(pen=1.0, slant=0.15, width=0.7, wobble=0.03, shapes={1: FLAGGED_ONE}),
    "school": Hand(pen=1.25, slant=-0.06, width=0.85, wobble=0.015, shapes={1: FLAGGED_ONE, 7: BARRED_SEVEN, 9: CURVED_NINE}),
}


def draw(digit: int, hand: Hand) -> np.ndarray:
    """A 28x28 byte image; the same arguments give the same bytes."""
    rng = np.random.default_rng(1000 * digit + round(100 * hand.pen))
    paths = []
    for stroke in hand.shapes.get(digit, DIGITS[digit]):
        points = np.array(stroke) + rng.normal(0, hand.wobble, (len(stroke), 2))
        x, y = smooth(points).T
        paths.append(np.stack([(x - 0.5) * hand.width - hand.slant * (y - 0.5), y - 0.5], axis=1))
    return ink(fitted(paths), hand.pen)


def smooth(points: np.ndarray, steps: int = 12) -> np.ndarray:
    """A Catmull-Rom curve through the points, as a polyline."""
    padded = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    t = np.linspace(0, 1, steps, endpoint=False)[:, None]
    pieces = []
    for a, b, c, d in zip(padded, padded[1:], padded[2:], padded[3:]):
        pieces.append(0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3))
    return np.concatenate([*pieces, points[-1:]])


def fitted(paths: list[np.ndarray]) -> list[np.ndarray]:
    """Scales the drawing into the box and puts its center of mass into the middle of the picture."""
    points = np.concatenate(paths)
    extent = points.max(0) - points.min(0)
    scale = (BOX - 2) / extent.max()
    lengths = [np.linalg.norm(np.diff(path, axis=0), axis=1) for path in paths]
    middles = np.concatenate([(path[1:] + path[:-1]) / 2 for path in paths])
    mass = np.average(middles, axis=0, weights=np.concatenate(lengths))
    # The box may not leave the picture, however far the mass is from the middle of the ink.
    low = (SIZE - 1) / 2 + (points.min(0) - mass) * scale
    high = (SIZE - 1) / 2 + (points.max(0) - mass) * scale
    shift = np.clip(0, 2 - low, SIZE - 3 - high)
    return [(path - mass) * scale + (SIZE - 1) / 2 + shift for path in paths]


def ink(paths: list[np.ndarray], pen: float) -> np.ndarray:
    """Anti-aliased: a pixel's grey is how far it lies inside the stroke, over one pixel."""
    grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), axis=-1).reshape(-1, 1, 2).astype(float)
    starts = np.concatenate([path[:-1] for path in paths])
    steps = np.concatenate([np.diff(path, axis=0) for path in paths])
    squares = np.maximum((steps**2).sum(1), 1e-12)
    along = np.clip(((grid - starts) * steps).sum(2) / squares, 0, 1)
    distance = np.linalg.norm(grid - (starts + along[..., None] * steps), axis=2).min(1)
    grey = np.clip(pen + 0.5 - distance, 0, 1)
    return np.round(255 * grey).astype(np.uint8).reshape(SIZE, SIZE)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("fhec-training draw", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    out = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    with (out / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "label"))
        for name, hand in HANDS.items():
            for digit in DIGITS:
                path = out / f"{name}-{digit}.png"
                Image.fromarray(draw(digit, hand)).save(path, optimize=True)
                writer.writerow((path.name, digit))
