"""From a model to encrypted scores."""

from __future__ import annotations

import struct
import sys
import types
import warnings

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
    rounded, raw = client.decrypt(result, scores=True), client.decrypt(result, raw=True)
    assert (rounded != raw).any()
    assert np.abs(rounded - raw).max() < program.max_abs_error * 5


def test_without_scores_only_the_class_is_told(program, client, server, pictures):
    result = server.run(client.encrypt(pictures[:2]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = client.decrypt(result)
        assert [answer.scores for answer in told] == [None, None]
        assert [answer.outputs for answer in client.answers(result)] == [{}, {}]
    clear = program.predict(pictures[:2])
    assert [answer.index for answer in told] == clear.argmax(axis=1).tolist()
    for ask in (lambda: client.decrypt(result, scores=True), lambda: client.decrypt(result, raw=True)):
        with pytest.warns(fhec.ScoresWarning, match="secret key") as warned:
            ask()
        assert warned[0].filename == __file__
    with pytest.warns(fhec.ScoresWarning):
        first = client.answers(result, scores=True)[0]
    assert np.abs(first.scores - clear[0]).max() < program.max_abs_error * 5


def test_one_sample_needs_no_sample_axis(client, server, pictures):
    one = client.decrypt(server.run(client.encrypt(pictures[0])), scores=True)
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


def test_files_folders_and_lists_are_samples(program, client, server):
    assert program.predict(str(DIGITS / "plain-3.png")).argmax() == 3
    both = [DIGITS / "plain-3.png", str(DIGITS / "plain-1.png")]
    assert [answer.index for answer in client.decrypt(server.run(client.encrypt(both)))] == [3, 1]
    x, y = program.interface.read(DIGITS)
    assert x.shape == (50, 1, 28, 28) and y.tolist() == list(range(10)) * 5
    assert (program.predict(x) == program.predict(DIGITS)).all()
    assert program.interface.read([both[0]])[1].tolist() == [3]
    found = program.simulate(DIGITS)
    assert found.samples == 50 and found.accuracy > 0.9


def bitmap(pixels: np.ndarray) -> bytes:
    """A gray picture as a BMP file of 24 bits; the width is a multiple of four."""
    height, width = pixels.shape
    body = np.repeat(pixels[::-1, :, None], 3, axis=2).astype(np.uint8).tobytes()
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(body), 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54) + head + body


def test_pictures_of_another_size_are_stretched_on_request(program, client, server, pictures, tmp_path):
    path = tmp_path / "large.bmp"
    path.write_bytes(bitmap(np.kron(pictures[0, 0], np.ones((2, 2)))))
    with pytest.raises(fhec.DataError) as found:
        client.encrypt(path)
    assert found.value.code == "shape" and found.value.facts["found"] == [56, 56] and "resize" in found.value.remedy
    stretched = program.predict(path, resize=True)
    assert stretched.argmax() == program.predict(pictures[0]).argmax()
    scores = client.decrypt(server.run(client.encrypt(path, resize=True)), raw=True)
    assert np.abs(scores - stretched).max() < program.max_abs_error


def test_arrays_read_from_files_have_no_classes_where_none_are_known(program, pictures, tmp_path):
    np.save(tmp_path / "x.npy", pictures)
    x, y = program.interface.read(tmp_path / "x.npy")
    assert y is None and (program.predict(x) == program.predict(pictures)).all()


def test_numbers_far_out_of_range_are_refused_and_doubted(client, server, pictures):
    x = pictures[:2] / 255.0
    x[1, 0, 3, 4] = 1000
    with pytest.raises(fhec.DataError) as found:
        client.encrypt(x)
    error = found.value
    assert error.code == "out-of-range" and error.facts["sample"] == 1 and error.facts["value"] == 1000
    assert error.facts["index"] == 3 * 28 + 4 and "any_range" in error.remedy
    result = server.run(client.encrypt(x, any_range=True))
    with pytest.warns(fhec.DoubtWarning, match="sample 1: score") as doubts:
        client.decrypt(result, scores=True)
    assert doubts[0].filename == __file__
    # Without scores it is not told which of the others are doubted.
    with pytest.warns(fhec.DoubtWarning, match="sample 1: (the best|another) score") as doubts:
        client.decrypt(result)
    assert len(doubts) <= 2 * len(x)
    with pytest.warns(fhec.DoubtWarning):
        client.decrypt(result, raw=True)


def test_a_compilation_ends_with_an_encrypted_evaluation(program, pictures):
    rehearsal = program.build_report["rehearsal"]
    assert rehearsal["is_same_class"] and rehearsal["max_abs_error"] <= rehearsal["predicted_max_abs_error"]
    without = fhec.compile(LENET, calibrate=pictures, toy=True, log_n=11, memory="2GiB", check=False)
    assert "rehearsal" not in without.build_report and without.to_bytes() == program.to_bytes()


def test_a_program_that_is_wrong_on_its_calibration_is_doubted(monkeypatch):
    from fhec import _compile

    check = {"samples": 9, "changed_classes": 3, "near_samples": 2, "wrapped_samples": 1, "is_real": True}
    monkeypatch.setattr(_compile._fhec, "compile", lambda *_: types.SimpleNamespace(build_report={"check": check}))
    with pytest.warns(fhec.DoubtWarning) as doubts:
        fhec.compile(LENET)
    assert [str(doubt.message) for doubt in doubts] == [
        "simulated noise changes the class of 3 of 9 calibration samples: ask for more precision=, or calibrate=",
        "2 of 9 calibration samples come within one bit of a modulus, 1 of them wrap around: ask for more headroom=",
    ]
    assert doubts[0].filename == __file__


def test_sizes_are_exact(program, client, keys, server, pictures):
    request = client.encrypt(pictures[0])
    face = program.interface
    assert face.input_bytes == request.nbytes and face.result_bytes == server.run(request).nbytes
    assert face.key_file_bytes == len(keys.to_bytes())


def test_simulation_tells_accuracy_and_agreement(program, pictures):
    truth = program.predict(pictures).argmax(axis=1)
    found = program.simulate(pictures, truth)
    # Two classes of one picture lie within the error of a program that is as cheap as this one.
    assert found.samples == 10 and found.agreement >= 0.9 and found.exact_accuracy == 1.0
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


def test_progress_goes_once_from_the_first_sample_to_the_last(server, client, pictures):
    request = client.encrypt(np.concatenate([pictures] * 2))
    seen: list[tuple[float | None, str]] = []
    server.run(request, progress=lambda fraction, text: seen.append((fraction, text)))
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions) and fractions[-1] == 1 and seen[-1][1].startswith("sample 20 of 20: ")
    with pytest.raises(TypeError, match="progress is True, False"):
        server.run(request, progress=3)


def test_a_callback_that_raises_ends_the_call(server, client, pictures):
    def callback(fraction: float, text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError):
        server.run(client.encrypt(np.concatenate([pictures] * 4)), progress=callback)


def test_progress_is_a_bar_where_there_is_tqdm_and_lines_elsewhere(server, client, pictures, monkeypatch, capsys):
    request = client.encrypt(np.concatenate([pictures] * 2))
    told: list[object] = []

    class Bar:
        n = 0.0

        def __init__(self, **options: object) -> None:
            told.append(options["total"])

        def set_description_str(self, text: str, refresh: bool) -> None:
            told.append(text)

        def refresh(self) -> None:
            told.append(self.n)

        def close(self) -> None:
            told.append("closed")

    fake = types.ModuleType("tqdm.auto")
    fake.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", fake)
    server.run(request, progress=True)
    assert told[0] == 100 and told[-1] == "closed" and len(told) > 3
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    server.run(request, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 6 and all("% sample" in line for line in lines)
