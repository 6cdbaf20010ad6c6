"""Files are those of the commands, both ways, to the bit."""

from __future__ import annotations

import pickle
import subprocess
import warnings

import numpy as np
import pytest
from conftest import LENET, command

import fhec


def test_objects_survive_their_files(program, client, server, pictures, tmp_path):
    program.save(tmp_path / "lenet.fhebc")
    again = fhec.Program.load(tmp_path / "lenet.fhebc")
    assert again.to_bytes() == program.to_bytes() and again.fingerprint == program.fingerprint
    interface = fhec.Interface.load(tmp_path / "lenet.fhei")
    assert interface.to_bytes() == program.interface.to_bytes() == fhec.Interface.load(program.to_bytes()).to_bytes()
    client.save(tmp_path / "me.key")
    same = fhec.Client.load(interface, tmp_path / "me.key")
    assert same.key == client.key
    same.encrypt(pictures[:1]).save(tmp_path / "x.ct")
    result = server.run(tmp_path / "x.ct")
    assert (client.decrypt(result, raw=True) == same.decrypt(result.to_bytes(), raw=True)).all()
    for value in (program, interface, result):
        assert pickle.loads(pickle.dumps(value)).to_bytes() == value.to_bytes()


def test_a_streamed_key_file_serves(program, client, pictures, tmp_path):
    client.save_eval_keys(tmp_path / "me.evk")
    with fhec.Server(program, memory="2GiB", insecure=True) as server:
        assert server.add_keys(tmp_path / "me.evk") == client.key
        scores = client.decrypt(server.run(client.encrypt(pictures[:1])), raw=True)
    assert np.abs(scores - program.predict(pictures[:1])).max() < program.max_abs_error


def test_the_commands_make_the_same_bits(program, client, keys, server, pictures, tmp_path):
    fhec_command, fhe_run = command("fhec"), command("fhe-run")

    def run(*arguments: object) -> bytes:
        return subprocess.run([str(a) for a in arguments], cwd=tmp_path, check=True, capture_output=True).stdout

    np.save(tmp_path / "x.npy", pictures)
    run(fhec_command, "build", LENET, "-o", "lenet.fhebc", "--calibrate", "x.npy", "--toy", "--log-n", 11, "--memory", "2G")
    assert (tmp_path / "lenet.fhebc").read_bytes() == program.to_bytes()
    assert (tmp_path / "lenet.fhei").read_bytes() == program.interface.to_bytes()

    client.save(tmp_path / "me.key")
    keys.save(tmp_path / "me.evk")
    request = client.encrypt(pictures[:2])
    request.save(tmp_path / "x.ct")
    run(fhe_run, "eval", "lenet.fhebc", "x.ct", "--eval-keys", "me.evk", "-o", "y.ct")
    result = server.run(request)
    assert (tmp_path / "y.ct").read_bytes() == result.to_bytes()

    run(fhe_run, "decrypt", "lenet.fhebc", "y.ct", "--secret-key", "me.key", "--raw", "--format", "npy", "--result", "y.npy")
    assert (np.load(tmp_path / "y.npy") == client.decrypt(result, raw=True)).all()

    run(fhe_run, "keygen", "lenet.fhebc", "--secret-key", "new.key", "--eval-keys", "new.evk", "--insecure")
    run(fhe_run, "encrypt", "lenet.fhebc", "x.npy", "--index", "0..2", "--secret-key", "new.key", "-o", "new.ct")
    server.remove_keys(keys.key)
    server.add_keys(tmp_path / "new.evk")
    scores = fhec.Client.load(program, tmp_path / "new.key").decrypt(server.run(tmp_path / "new.ct"), raw=True)
    assert np.abs(scores - program.predict(pictures[:2])).max() < program.max_abs_error


def test_no_file_is_lost_to_another(program, client, keys, tmp_path):
    """Keys replace nothing, and what else is written replaces its own kind only."""
    client.save(tmp_path / "me.key")
    keys.save(tmp_path / "me.evk")
    program.save(tmp_path / "lenet.fhebc")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    writers = [client.save, keys.save, client.save_eval_keys, program.report().save]
    for path in before:
        for write in writers:
            with pytest.raises(fhec.FileError):
                write(path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    for _ in range(2):
        program.report().save(tmp_path / "report.html")


def test_a_key_of_another_program_says_so(program, client, pictures, tmp_path):
    client.save(tmp_path / "me.key")
    other = fhec.compile(LENET, calibrate=pictures[:5], toy=True, like=program)
    assert other.fingerprint != program.fingerprint
    with pytest.warns(fhec.DoubtWarning, match="was made for program"):
        fhec.Client.load(other, tmp_path / "me.key")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fhec.Client.load(program, tmp_path / "me.key")
