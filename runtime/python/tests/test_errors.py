"""What goes wrong is an exception with a code, facts and a remedy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from conftest import LENET, ROOT

import fhec


def caught(kind: type[fhec.FhecError], code: str, call) -> fhec.FhecError:
    with pytest.raises(kind) as found:
        call()
    error = found.value
    assert error.code == code, error
    assert error.remedy and error.remedy in str(error)
    return error


def test_wrong_dtype_names_both(client, pictures):
    error = caught(fhec.DataError, "dtype", lambda: client.encrypt(pictures.astype(np.int64)))
    assert "int64" in error.what and "uint8" in error.what and error.facts["found"] == "int64"
    caught(fhec.DataError, "dtype", lambda: client.encrypt(pictures.astype(">f4")))
    caught(fhec.DataError, "dtype", lambda: client.encrypt(np.array(["a"])))
    caught(fhec.DataError, "dtype", lambda: fhec.compile(LENET, calibrate=pictures.astype(np.int32)))


def test_wrong_shape_names_both(client, program):
    error = caught(fhec.DataError, "shape", lambda: client.encrypt(np.zeros((2, 3, 28, 28))))
    assert "[2, 3, 28, 28]" in error.what and "[1,28,28]" in error.what
    assert isinstance(error, ValueError) and error.facts["wanted"] == [1, 28, 28]
    caught(fhec.DataError, "shape", lambda: program.predict(np.zeros(5)))


def test_what_is_no_number_is_refused(client, program, pictures):
    x = pictures[:2] / 255.0
    for value in (np.nan, np.inf, -np.inf):
        x[1, 0, 3, 4] = value
        error = caught(fhec.DataError, "not-finite", lambda: client.encrypt(x))
        assert "holds" in error.what and error.facts["number"] in ("NaN", "inf", "-inf")
        caught(fhec.DataError, "not-finite", lambda: program.simulate(x))
        caught(fhec.DataError, "not-finite", lambda: fhec.compile(LENET, calibrate=x))


def test_labels_are_checked(program, pictures):
    caught(fhec.DataError, "label-count", lambda: program.simulate(pictures, [0, 1]))
    caught(fhec.DataError, "no-class", lambda: program.simulate(pictures, [10] * 10))
    caught(fhec.DataError, "no-class", lambda: program.simulate(pictures, [-1] * 10))
    caught(fhec.DataError, "no-labels", lambda: program.simulate(pictures, [0.5] * 10))


def test_a_model_that_cannot_be_encrypted_names_its_nodes(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(LENET.read_bytes()[:500])
    caught(fhec.ModelError, "model-malformed", lambda: fhec.compile(tmp_path / "broken.onnx"))
    caught(fhec.ModelError, "model-unreadable", lambda: fhec.levels(tmp_path / "none.onnx"))
    error = caught(fhec.ModelError, "model-refused", lambda: fhec.levels(ROOT / "onnx-models/exporters/sklearn-mlp.onnx"))
    assert error.facts["places"] and error.facts["places"][0]["why"] in error.what


def test_options_are_checked():
    caught(fhec.UsageError, "label-count", lambda: fhec.compile(LENET, labels=["a"], toy=True))
    caught(fhec.UsageError, "option", lambda: fhec.compile(LENET, layout="diagonal"))
    caught(fhec.UsageError, "option", lambda: fhec.compile(LENET, memory="3 parsecs"))
    caught(fhec.UsageError, "option", lambda: fhec.compile(LENET, relu="cubic"))
    caught(fhec.UsageError, "toy-ring", lambda: fhec.compile(LENET, log_n=10))
    with pytest.raises(TypeError):
        fhec.compile(3)
    with pytest.raises(TypeError, match="no option speed"):
        fhec.report(LENET, speed=3)


def test_rings_that_protect_nothing_are_asked_for(program):
    caught(fhec.UsageError, "insecure", lambda: fhec.Client(program))
    caught(fhec.UsageError, "insecure", lambda: fhec.Server(program))


def test_foreign_keys_are_refused(program, client, keys, server, pictures):
    other = fhec.Client(program, insecure=True)
    error = caught(fhec.MismatchError, "unknown-key", lambda: server.run(other.encrypt(pictures[0])))
    assert error.facts["key"] == other.key
    result = server.run(client.encrypt(pictures[0]))
    error = caught(fhec.MismatchError, "other-key", lambda: other.decrypt(result))
    assert "Client that encrypted" in error.remedy
    small = fhec.compile(ROOT / "onnx-models/exporters/sklearn-linear.onnx", toy=True)
    foreign = fhec.Client(small, insecure=True)
    caught(fhec.MismatchError, "other-parameters", lambda: server.add_keys(foreign.eval_keys()))


def test_a_result_answers_its_request(client, server, pictures):
    one, other = client.encrypt(pictures[0]), client.encrypt(pictures[0])
    result = server.run(one)
    assert (client.decrypt(result, request=one, scores=True) == client.decrypt(result, scores=True)).all()
    caught(fhec.MismatchError, "other-request", lambda: client.decrypt(result, request=other))


def test_a_server_takes_no_secret(server, client, tmp_path):
    client.save(tmp_path / "me.key")
    for secret in (tmp_path / "me.key", (tmp_path / "me.key").read_bytes()):
        caught(fhec.FileError, "secret-given", lambda: server.add_keys(secret))
        caught(fhec.FileError, "secret-given", lambda: server.run(secret))
    assert not [name for name in dir(fhec.Server) if "secret" in name or "decrypt" in name]


def test_damaged_files_are_refused(program, client, server, pictures, tmp_path):
    request = client.encrypt(pictures[0])
    for name, data, read in [
        ("cut", request.to_bytes()[:-5], server.run),
        ("changed", request.to_bytes()[:-100] + b"x" * 100, server.run),
        ("program", program.to_bytes()[:-9], fhec.Program.load),
        ("interface", program.interface.to_bytes()[:-9], fhec.Interface.load),
        ("empty", b"", fhec.Program.load),
        ("keys", client.eval_keys().to_bytes()[:-1], server.add_keys),
    ]:
        (tmp_path / name).write_bytes(data)
        for source in (data, tmp_path / name):
            with pytest.raises(fhec.FileError) as found:
                read(source)
            assert found.value.remedy, name
    caught(fhec.FileError, "other-kind", lambda: client.decrypt(request))
    caught(fhec.FileError, "file-unreadable", lambda: fhec.Program.load(tmp_path / "none"))
    with pytest.raises(TypeError, match="a path or bytes, not int"):
        fhec.Program.load(3)


def test_secret_keys_are_never_replaced_and_never_shared(program, client, tmp_path):
    path = tmp_path / "me.key"
    client.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    caught(fhec.FileError, "file-exists", lambda: client.save(path))
    path.chmod(0o644)
    caught(fhec.FileError, "secret-readable", lambda: fhec.Client.load(program, path))


def test_clients_stay_where_they_are(client, server):
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="holds a secret key"):
            call(client)
    assert repr(client) == f"<fhec.Client with key {client.key[:8]}…>" == str(client)
    with pytest.raises(TypeError, match="make one in every process"):
        pickle.dumps(server)


def test_sizes_are_checked(program):
    for size in ("3 parsecs", -5, 1.5, None.__class__):
        error = caught(fhec.UsageError, "option", lambda: fhec.Server(program, memory=size, insecure=True))
        assert "4GiB" in error.remedy
    caught(fhec.UsageError, "option", lambda: fhec.compile(LENET, memory=-1))


def test_wrong_types_are_named(program, client, server):
    for call, words in [
        (lambda: fhec.Client(3), "an Interface, a Program or a path, not int"),
        (lambda: fhec.Server(3), "a Program or the path of one, not int"),
        (lambda: server.run(3), "Ciphertexts, a path or bytes, not int"),
        (lambda: server.add_keys(3), "EvalKeys, a path or bytes, not int"),
        (lambda: client.decrypt(None), "Ciphertexts, a path or bytes, not NoneType"),
    ]:
        with pytest.raises(TypeError, match=words):
            call()
    caught(fhec.DataError, "dtype", lambda: client.encrypt(None))
    caught(fhec.DataError, "dtype", lambda: client.encrypt([["a"]]))


def test_calibration_that_cannot_be_read_is_named(tmp_path):
    caught(fhec.DataError, "calibration-unreadable", lambda: fhec.compile(LENET, calibrate=tmp_path / "none.png"))
    caught(fhec.DataError, "calibration-unreadable", lambda: fhec.compile(LENET, calibrate=tmp_path))
    (tmp_path / "noise.png").write_bytes(b"\x89PNG but no picture")
    error = caught(fhec.DataError, "calibration-unreadable", lambda: fhec.compile(LENET, calibrate=[tmp_path / "noise.png"]))
    assert "noise.png" in error.what


def test_memory_is_a_budget(program, keys):
    error = caught(fhec.ResourceError, "memory", lambda: fhec.Server(program, memory=1000, insecure=True))
    assert error.facts["needed"] > error.facts["budget"] == 1000
    tight = program.key_bytes + program.working_bytes
    with fhec.Server(program, memory=tight, insecure=True) as server:
        server.add_keys(keys)
        server.add_keys(keys)
        second = fhec.Client(program, insecure=True).eval_keys()
        caught(fhec.ResourceError, "memory", lambda: server.add_keys(second))
        server.remove_keys(keys.key)
        server.add_keys(second)
        assert server.keys_held == [second.key] and server.nbytes <= tight
        caught(fhec.MismatchError, "unknown-key", lambda: server.remove_keys(keys.key))


def test_closed_servers_say_so(program, keys, client, pictures):
    server = fhec.Server(program, memory="2GiB", insecure=True)
    server.add_keys(keys)
    request = client.encrypt(pictures[0])
    server.close()
    server.close()
    caught(fhec.UsageError, "closed", lambda: server.run(request))
    caught(fhec.UsageError, "closed", lambda: server.add_keys(keys))
    assert "closed" in repr(server)


def test_exceptions_survive_pickling(client):
    try:
        client.encrypt(np.zeros(3))
    except fhec.DataError as error:
        again = pickle.loads(pickle.dumps(error))
        assert (again.code, again.facts, str(again)) == (error.code, error.facts, str(error))
