"""What all generators of the zoo share: a model file, and beside it inputs with the original runtime's answers.

`NAME.json` holds what the table in docs/models.md says of the model:

    source     the exporter
    what       what the model is, for the table
    expect     "works", "approximated" (with --approximate) or "refused"
    because    for refused ones, words that the message must contain
    remedy     for refused ones, what its owner can do, for the table
    inputs     name -> shape, and the numbers of every sample, the model's own order
    outputs    name -> numbers or labels of every sample, as the original runtime computed them
    calibrate  numbers of further samples, where polynomials are fitted
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SAMPLES = 2


def rounded(array):
    """Plain numbers, short enough for a small file and exact enough to compare with."""
    return [float(f"{x:.7g}") for x in np.asarray(array, dtype=np.float64).flatten()]


def write(name, source, what, inputs, outputs, expect="works", because="", remedy="", calibrate=None, build=()):
    """Writes NAME.json. `inputs` and `outputs` map names to arrays whose first axis is the sample."""
    def labels(values):
        return [str(v) for v in np.asarray(values).flatten()]

    def answer(values):
        values = np.asarray(values)
        is_label = values.dtype.kind in "iUSO"
        return [labels(v) if is_label else rounded(v) for v in values]

    card = {"source": source, "what": what, "expect": expect}
    if because:
        card["because"] = because
    if remedy:
        card["remedy"] = remedy
    if build:
        card["build"] = list(build)
    card["inputs"] = {
        key: {"shape": [1, *np.asarray(value).shape[1:]], "samples": [rounded(v) for v in value]}
        for key, value in inputs.items()
    }
    card["outputs"] = {key: answer(value) for key, value in outputs.items()}
    if calibrate is not None:
        card["calibrate"] = {key: [rounded(v) for v in value] for key, value in calibrate.items()}
    (HERE / f"{name}.json").write_text(json.dumps(card, separators=(",", ":")) + "\n")
