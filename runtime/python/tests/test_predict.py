"""From a model to encrypted scores."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIGITS, LENET

import fhec


def test_encrypted_scores_are_those_of_the_program(program, client, server, pictures):
    scores = client.decrypt(server.run(client.encrypt(pictures[:3])), raw=True)
    clear = program.predict(pictures[:3])
    assert scores.shape == clear.shape == (3, 10)
    assert np.abs(scores - clear).max() < program.max_abs_error
    assert not np.allclose(clear[0], clear[1])


def test_scores_are_rounded_unless_raw(program, client, server, pictures):
    result = server.run(client.encrypt(pictures[:1]))
    rounded, raw = client.decrypt(result), client.decrypt(result, raw=True)
    assert (rounded != raw).any()
    assert np.abs(rounded - raw).max() < program.max_abs_error * 5


def test_one_sample_needs_no_sample_axis(client, server, pictures):
    one = client.decrypt(server.run(client.encrypt(pictures[0])))
    assert one.shape == (1, 10)


def test_arrays_are_read_as_numpy_means_them(program, pictures):
    x = (pictures[:4] / 255.0 - 0.1307) / 0.3081
    expected = program.predict(x)
    layouts = {
        "fortran": np.asfortranarray(x),
        "transposed": np.ascontiguousarray(x.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0),
        "every second": np.repeat(x, 2, axis=0)[::2],
        "reversed twice": x[::-1][::-1],
        "channels last": np.moveaxis(x, 1, -1),
        "list": x.tolist(),
    }
    for name, view in layouts.items():
        assert (program.predict(view) == expected).all(), name
    flipped = x[:, :, :, ::-1]
    assert (program.predict(flipped) == program.predict(flipped.copy())).all()
    assert not np.allclose(program.predict(flipped), expected)
    assert np.allclose(program.predict(x.astype(np.float32)), expected, atol=1e-4)


def test_pixels_get_the_normalization_of_the_model(program, pictures):
    mean, std = program.interface.mean[0], program.interface.std[0]
    by_hand = (pictures / 255.0 - mean) / std
    assert np.allclose(program.predict(pictures), program.predict(by_hand), atol=1e-9)


def test_fortran_order_reaches_the_server(program, client, server, pictures):
    x = np.asfortranarray((pictures[:1] / 255.0 - 0.1307) / 0.3081)
    scores = client.decrypt(server.run(client.encrypt(x)), raw=True)
    assert np.abs(scores - program.predict(np.ascontiguousarray(x))).max() < program.max_abs_error


def test_files_are_samples(program):
    scores = program.predict(str(DIGITS / "plain-3.png"))
    assert scores.argmax() == 3


def test_simulation_tells_accuracy_and_agreement(program, pictures):
    truth = program.predict(pictures).argmax(axis=1)
    found = program.simulate(pictures, truth)
    assert found.samples == 10 and found.agreement == 1.0 and found.exact_accuracy == 1.0
    assert 0 < found.max_abs_error < program.max_abs_error
    assert found.layers and "accuracy" in found._repr_html_()
    assert program.simulate(pictures).accuracy is None
    assert fhec.simulate(program, pictures, truth) == found


def test_levels_are_those_of_the_command():
    found = fhec.levels(LENET)
    assert found.levels["FRT"] == 4 and found.levels["none"] == 13
    assert "FRT" in repr(found) and "<td>4</td>" in found._repr_html_()


def test_models_may_be_bytes_and_ensembles(pictures):
    data = LENET.read_bytes()

    class Proto:
        def SerializeToString(self) -> bytes:  # noqa: N802
            return data

    levels = [fhec.levels(model).levels for model in (str(LENET), data, Proto())]
    assert levels[0] == levels[1] == levels[2]


def test_a_program_shows_itself(program):
    page = program._repr_html_()
    assert "levels" in page and "<svg" in page and "protects nothing" in page
    assert "INSECURE" in repr(program)
    report = program.report()
    assert report.html.startswith("<!DOCTYPE html>") and "iframe" in report._repr_html_()
    assert program.build_report["levels"] >= 4
    assert [layer["name"] for layer in program.layers]


def test_a_data_set_runs_encrypted(program, pictures):
    truth = program.predict(pictures).argmax(axis=1)
    seen = []
    found = fhec.run_dataset(program, pictures[:3], truth[:3], memory="2GiB", insecure=True, progress=lambda f, t: seen.append(t))
    assert len(found) == 3 and found.accuracy == found.agreement == found.clear_accuracy == 1.0
    assert found.max_abs_error < program.max_abs_error and found.seconds > 0
    assert seen[0] == "sample 1 of 3" and "agreement" in found._repr_html_()


def test_progress_ends_at_the_end(server, client, pictures):
    request = client.encrypt(pictures[:1])
    seen: list[tuple[float | None, str]] = []
    server.run(request, progress=lambda fraction, text: seen.append((fraction, text)))
    assert seen and all(0 <= fraction <= 1 for fraction, _ in seen)
    with pytest.raises(TypeError, match="progress is True, False"):
        server.run(request, progress=3)


def test_a_callback_that_raises_ends_the_call(server, client, pictures):
    def callback(fraction: float, text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError):
        server.run(client.encrypt(np.concatenate([pictures] * 4)), progress=callback)
