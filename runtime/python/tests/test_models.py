"""Models of several frameworks, inputs and outputs: encrypted answers are those of the runtimes that they come from."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from conftest import ROOT

import fhec

ZOO = ROOT / "onnx-models" / "zoo"


def card(name: str) -> tuple[dict[str, np.ndarray], dict[str, list], dict[str, np.ndarray]]:
    """Inputs of a model by name, in its own shapes, what it answers, and what it is calibrated on."""
    known = json.loads((ZOO / f"{name}.json").read_text())
    arrays = {}
    for key, found in known["inputs"].items():
        shape = (-1, *found["shape"][1:])
        samples = np.array(found["samples"]).reshape(shape)
        more = np.array(found.get("calibrate", [])).reshape(shape)
        arrays[key] = (samples, np.concatenate([samples, more]))
    return {key: a for key, (a, _) in arrays.items()}, known["outputs"], {key: a for key, (_, a) in arrays.items()}


def given(arrays: dict[str, np.ndarray]) -> object:
    """What a user gives: an array for one input, a dictionary for several."""
    return arrays if len(arrays) > 1 else next(iter(arrays.values()))


def encrypted(name: str, **options: object) -> tuple[fhec.Program, list[fhec.Answer], np.ndarray, dict[str, list]]:
    """A program, what its encrypted results say, every digit of them, and what the model answers."""
    inputs, outputs, calibration = card(name)
    program = fhec.compile(ZOO / f"{name}.onnx", calibrate=given(calibration), toy=True, memory="2GiB", **options)
    client = fhec.Client(program, insecure=True)
    with fhec.Server(program, memory="2GiB", insecure=True) as server:
        server.add_keys(client.eval_keys())
        request = client.encrypt(given(inputs))
        result = server.run(request)
        return program, client.answers(result, request=request, scores=True), client.decrypt(result, raw=True), outputs


def close(found: np.ndarray, wanted: list, room: float) -> bool:
    return bool(np.abs(np.ravel(found) - np.ravel(wanted)).max() <= room)


@pytest.mark.parametrize(
    "name", ["keras-conv1d", "keras-upsampling", "pt-conv1d", "pt-two-inputs", "pt-image-and-facts", "skl-linear-regression"]
)
def test_scores_are_those_of_the_original_runtime(name):
    program, answers, scores, outputs = encrypted(name)
    (wanted,) = outputs.values()
    assert close(scores, wanted, program.max_abs_error + 1e-3) and not answers[0].outputs


@pytest.mark.parametrize("name", ["keras-cnn", "pt-softmax", "pt-sigmoid", "pt-two-outputs", "pt-two-outputs-tails"])
def test_outputs_are_those_of_the_model_in_its_own_order(name):
    program, answers, _, outputs = encrypted(name)
    for i, answer in enumerate(answers):
        assert set(answer.outputs) == set(outputs)
        for key, wanted in outputs.items():
            # Outputs are computed from scores that are rounded to a power of ten.
            unit = 10 ** math.ceil(math.log10(program.max_abs_error))
            assert close(answer.outputs[key], wanted[i], 2 * program.max_abs_error + 0.02 + unit / 2), (name, key)


@pytest.mark.parametrize("name", ["skl-logistic-3", "pt-argmax"])
def test_classes_are_those_of_the_model_by_name(name):
    _, answers, _, outputs = encrypted(name)
    labels = next(value for value in outputs.values() if not isinstance(value[0][0], float))
    assert [answer.label for answer in answers] == [str(label[0]) for label in labels]
    assert all(answer.confidence is None or 0 <= answer.confidence <= 1 for answer in answers)


def test_functions_that_are_no_polynomials_are_approximated_on_request():
    with pytest.raises(fhec.ModelError):
        encrypted("pt-act-relu")
    _, _, scores, outputs = encrypted("pt-act-relu", approximate=True)
    (wanted,) = outputs.values()
    assert close(scores, wanted, 0.2 * np.abs(wanted).max())


def test_one_output_can_be_asked_for():
    program, _, _, outputs = encrypted("pt-two-outputs", outputs=[next(iter(card("pt-two-outputs")[1]))])
    assert program.n_scores == np.size(next(iter(outputs.values()))[0])


def test_several_inputs_come_by_name(tmp_path):
    inputs, outputs, _ = card("pt-two-inputs")
    program = fhec.compile(ZOO / "pt-two-inputs.onnx", calibrate=inputs, toy=True)
    assert program.interface.inputs == [("x0", [1, 6]), ("x1", [1, 3])]
    clear = program.predict(inputs)
    assert close(clear, outputs["y"], 1e-3)
    np.savez(tmp_path / "both.npz", **inputs)
    assert (program.predict(tmp_path / "both.npz") == clear).all()
    assert (program.predict({name: array[0] for name, array in inputs.items()}) == clear[:1]).all()
    for wrong in (inputs["x0"], np.concatenate(list(inputs.values()), axis=1)):
        with pytest.raises(fhec.DataError) as found:
            program.predict(wrong)
        assert found.value.code == "inputs" and "x0, x1" in found.value.what and "dictionary" in found.value.remedy
    with pytest.raises(fhec.DataError, match="no array named x1"):
        program.predict({"x0": inputs["x0"]})
    with pytest.raises(fhec.DataError, match="x1: an array of int64"):
        program.predict({**inputs, "x1": np.ones((2, 3), dtype=np.int64)})


def test_inputs_are_encrypted_one_by_one_and_joined_without_a_secret(tmp_path):
    inputs, outputs, _ = card("pt-image-and-facts")
    program = fhec.compile(ZOO / "pt-image-and-facts.onnx", calibrate=inputs, toy=True)
    client = fhec.Client(program, insecure=True)
    image = client.encrypt(inputs["x0"], model_input="x0")
    np.save(tmp_path / "facts.npy", inputs["x1"])
    facts = client.encrypt(tmp_path / "facts.npy", model_input="x1")
    facts.save(tmp_path / "facts.ct")
    request = program.interface.join([tmp_path / "facts.ct", image])
    with fhec.Server(program, insecure=True) as server:
        server.add_keys(client.eval_keys())
        scores = client.decrypt(server.run(request), request=request, raw=True)
        with pytest.raises(fhec.FhecError):
            server.run(image)
    assert close(scores, outputs["y"], program.max_abs_error + 1e-3)
    other = fhec.Client(program, insecure=True).encrypt(inputs["x1"], model_input="x1")
    one = client.encrypt(inputs["x1"][:1], model_input="x1")
    for parts, words in (([image], "no part has input x1"), ([image, image], "parts\\[1\\]: has input x0"), ([image, request], "a whole input"),
                         ([image, other], "belongs to key"), ([image, one], "has 1 samples")):
        with pytest.raises(fhec.DataError, match=words) as found:
            program.interface.join(parts)
        assert found.value.code == "not-joined" and "once" in found.value.remedy
    with pytest.raises(fhec.DataError, match="no input x2, but x0, x1"):
        client.encrypt(inputs["x1"], model_input="x2")


def test_keys_serve_the_next_version_of_a_model():
    inputs, _, _ = card("pt-cnn")
    first = fhec.compile(ZOO / "pt-cnn.onnx", calibrate=given(inputs), toy=True)
    again = fhec.compile(ZOO / "pt-cnn.onnx", calibrate=given(inputs), toy=True, like=first)
    client = fhec.Client(first, insecure=True)
    with fhec.Server(again, memory="2GiB", insecure=True) as server:
        server.add_keys(client.eval_keys())
