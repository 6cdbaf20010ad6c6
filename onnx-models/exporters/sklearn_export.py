"""Trains a small MLP on the iris data with scikit-learn and exports it with skl2onnx.

    pip install scikit-learn skl2onnx
    python sklearn_export.py

Writes sklearn-mlp.onnx: feature scaling, ReLU layers, a softmax, an argmax and label look-ups, as skl2onnx spells them.
ReLU is not a polynomial, so this one is refused as it is and imports with `--relu quadratic`. Also writes
sklearn-linear.onnx (the identity as activation), which imports as it is. Each has a JSON file with one input and
scikit-learn's own class probabilities.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import onnx
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).parent


def main():
    warnings.simplefilter("ignore")
    x, labels = load_iris(return_X_y=True)
    x = x.astype("float32")
    for name, activation in (("sklearn-mlp", "relu"), ("sklearn-linear", "identity")):
        network = MLPClassifier((8, 6), activation=activation, max_iter=300, random_state=7)
        model = make_pipeline(StandardScaler(), network).fit(x, labels)
        proto = to_onnx(model, x[:1], target_opset=15)
        onnx.save(proto, HERE / f"{name}.onnx")
        sample = {"input": x[0].tolist(), "output": model.predict_proba(x[:1])[0].tolist()}
        (HERE / f"{name}.json").write_text(json.dumps(sample))


if __name__ == "__main__":
    main()
