"""Models of scikit-learn, exported by skl2onnx as they come, on the data sets that scikit-learn ships.

    pip install scikit-learn skl2onnx onnx onnxruntime
    python sklearn_zoo.py [NAME…]

With names, these models alone are made again.
"""

import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from common import HERE, SAMPLES, write
from skl2onnx import to_onnx
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, Perceptron, Ridge, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

SOURCE = "scikit-learn, skl2onnx"
LINEAR = "use a linear model, a polynomial kernel, or an MLP"


def scores(proto, name, samples):
    """What onnxruntime gives for an output that scikit-learn has no name for."""
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    rows = [session.run([name], {proto.graph.input[0].name: row[None]})[0] for row in samples]
    return np.array([list(row[0].values()) for row in rows])


def export(name, what, model, x, y, probabilities=True, runtime=False, **card):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    model.fit(x, y)
    proto = to_onnx(model, x[:1], target_opset=15)
    onnx.save(proto, HERE / f"{name}.onnx")
    names = [output.name for output in proto.graph.output]
    sample = x[:: max(1, len(x) // SAMPLES)][:SAMPLES]
    outputs = {}
    if card.get("expect") != "refused":
        outputs[names[0]] = model.predict(sample)
        if runtime:
            outputs[names[1]] = scores(proto, names[1], sample)
        elif len(names) > 1 and probabilities:
            outputs[names[1]] = model.predict_proba(sample)
        keep = [a.split("=")[1] for a in card.get("build", ()) if a.startswith("--model-output=")]
        outputs = {k: v for k, v in outputs.items() if not keep or k in keep}
    if card.get("expect") == "approximated":
        card["calibrate"] = {proto.graph.input[0].name: x[::3]}
    write(name, SOURCE, what, {proto.graph.input[0].name: sample}, outputs, **card)


def main():
    warnings.simplefilter("ignore")
    np.random.seed(7)
    x, y = load_iris(return_X_y=True)
    x = x.astype("float32")
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    two = (y == 2).astype(int)
    wine, wine_y = load_wine(return_X_y=True)
    wine = wine.astype("float32")
    diabetes, target = load_diabetes(return_X_y=True)
    diabetes, target = diabetes.astype("float32"), target / 100
    cancer, cancer_y = load_breast_cancer(return_X_y=True)
    cancer = cancer.astype("float32")

    scaled = StandardScaler
    export("skl-logistic-3", "LogisticRegression, three classes with names", LogisticRegression(max_iter=500), x, names)
    export("skl-logistic-2", "LogisticRegression, two classes", LogisticRegression(), x, two)
    export("skl-ovr", "OneVsRestClassifier of LogisticRegression", OneVsRestClassifier(LogisticRegression()), x, y)
    export("skl-linear-regression", "LinearRegression", LinearRegression(), diabetes, target)
    export("skl-ridge-2", "Ridge with two targets", Ridge(), diabetes, np.stack([target, -target], 1))
    export("skl-ridge-classifier", "MinMaxScaler, RidgeClassifier", make_pipeline(MinMaxScaler(), RidgeClassifier()), x, y, probabilities=False)
    export("skl-linear-svc", "LinearSVC", LinearSVC(), x, y, probabilities=False)
    export("skl-pca", "StandardScaler, PCA, LogisticRegression", make_pipeline(scaled(), PCA(5), LogisticRegression()), wine, wine_y)
    export("skl-lda", "LinearDiscriminantAnalysis", LinearDiscriminantAnalysis(), x, y)
    export("skl-polynomial-features", "PolynomialFeatures of degree 2, Ridge", make_pipeline(scaled(), PolynomialFeatures(2), Ridge()), x, y)
    export("skl-svc-poly-2", "SVC, polynomial kernel, two classes", make_pipeline(scaled(), SVC(kernel="poly", degree=2, coef0=1.0)), x, two, runtime=True)
    export("skl-svc-poly-3", "SVC, polynomial kernel, three classes", make_pipeline(scaled(), SVC(kernel="poly", degree=3, coef0=1.0)), x, y, probabilities=False, build=["--model-output=output_label"])
    export("skl-svr-poly", "SVR, polynomial kernel", make_pipeline(scaled(), SVR(kernel="poly", degree=2, coef0=1.0)), diabetes[:80], target[:80])
    export("skl-svc-linear", "SVC, linear kernel, two classes", make_pipeline(scaled(), SVC(kernel="linear")), cancer[:200], cancer_y[:200], runtime=True)
    export("skl-mlp-identity-2", "MLPClassifier, identity, two classes", make_pipeline(scaled(), MLPClassifier((6,), activation="identity", max_iter=300)), x, two)
    export("skl-mlp-relu", "MLPClassifier, ReLU", make_pipeline(scaled(), MLPClassifier((8, 6), activation="relu", max_iter=300, random_state=1)), x, names, expect="approximated")
    export("skl-mlp-tanh", "MLPClassifier, tanh", make_pipeline(scaled(), MLPClassifier((8,), activation="tanh", max_iter=300, random_state=1)), x, y, expect="approximated")
    export("skl-mlp-logistic-2", "MLPClassifier, logistic, two classes", make_pipeline(scaled(), MLPClassifier((6,), activation="logistic", max_iter=300, random_state=1)), x, two, expect="approximated")
    export("skl-mlp-regressor", "MLPRegressor, tanh", make_pipeline(scaled(), MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=300, random_state=1)), diabetes, target, expect="approximated")
    export("skl-sgd", "StandardScaler, SGDClassifier (hinge), two classes", make_pipeline(StandardScaler(), SGDClassifier(random_state=1)), cancer, cancer_y, probabilities=False)
    export("skl-perceptron", "Perceptron, three classes", make_pipeline(StandardScaler(), Perceptron()), x, y, probabilities=False)
    export("skl-poly-10", "PolynomialFeatures of degree 2 on ten features, ElasticNet", make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), ElasticNet(alpha=0.1)), diabetes, target)
    export("skl-naive-bayes", "GaussianNB, three classes", GaussianNB(), x, y, probabilities=False, build=["--model-output=output_label"])
    export("skl-qda", "QuadraticDiscriminantAnalysis", QuadraticDiscriminantAnalysis(), x, names, probabilities=False, build=["--model-output=output_label"])
    export("skl-normalizer", "Normalizer, LogisticRegression", make_pipeline(Normalizer(), LogisticRegression()), x, y, expect="refused", because="norm of the row", remedy="use StandardScaler or MinMaxScaler")
    export("skl-forest", "RandomForestClassifier", RandomForestClassifier(3, max_depth=2), x, y, expect="refused", because="a decision tree compares", remedy=LINEAR)
    export("skl-svc-rbf", "SVC, RBF kernel", SVC(), x, two, expect="refused", because="a kernel of exponentials", remedy="use a polynomial or linear kernel")
    export("skl-neighbors", "KNeighborsClassifier", KNeighborsClassifier(), x[::10], y[::10], expect="refused", because="compares encrypted values", remedy=LINEAR)


if __name__ == "__main__":
    main()
