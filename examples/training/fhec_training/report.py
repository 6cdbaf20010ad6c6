"""What a run leaves for people: `log.csv`, one row per epoch, and two plots."""

from __future__ import annotations

import csv
from pathlib import Path

FIELDS = ("epoch", "minutes", "progress", "lr", "zeta", "loss", "penalty", "train_accuracy", "test_accuracy", "ranges")
"""`ranges` is `name:low:high` for every activation, separated by spaces, over the first test images."""


def append(folder: Path, row: dict[str, object]) -> None:
    path = folder / "log.csv"
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def plot(folder: Path, c: float) -> None:
    """Writes accuracy.png and ranges.png from log.csv."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with (folder / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    epochs = [int(row["epoch"]) for row in rows]

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for field in ("train_accuracy", "test_accuracy"):
        axes.plot(epochs, [float(row[field]) for row in rows], label=field.replace("_", " "))
    axes.set(xlabel="epoch", ylabel="accuracy")
    axes.legend()
    figure.savefig(folder / "accuracy.png", dpi=120, bbox_inches="tight")
    pyplot.close(figure)

    if not rows[-1]["ranges"]:
        return
    figure, axes = pyplot.subplots(figsize=(6, 4))
    ranges = [[part.rsplit(":", 2)[1:] for part in row["ranges"].split()] for row in rows]
    for layer in range(len(ranges[-1])):
        color = pyplot.get_cmap("viridis")(layer / max(1, len(ranges[-1]) - 1))
        for bound in (0, 1):
            axes.plot(epochs, [float(row[layer][bound]) for row in ranges], color=color, linewidth=0.8)
    for bound in (-c, c):
        axes.axhline(bound, color="black", linestyle="dashed")
    axes.set(xlabel="epoch", ylabel="extreme pre-activations per layer")
    figure.savefig(folder / "ranges.png", dpi=120, bbox_inches="tight")
    pyplot.close(figure)
