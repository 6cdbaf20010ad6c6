"""A server on the network: the command `fhe-serve`, and what is no such server."""

from __future__ import annotations

import json
import math
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

import numpy as np
import pytest
from conftest import command

import fhec


@pytest.fixture(scope="module")
def address(program, tmp_path_factory):
    serve = command("fhe-serve")
    folder = tmp_path_factory.mktemp("serve")
    program.save(folder / "lenet.fhebc")
    arguments = [serve, "run", "lenet.fhebc", "--listen", "127.0.0.1:0", "--insecure", "--memory", "1GiB", "--store", "store"]
    process = subprocess.Popen(arguments, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    found = None
    seen = []
    for line in process.stderr if process.stderr else []:
        seen.append(line)
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        if found and found[1] != "0":
            break
    assert found, "".join(seen)
    # Whatever else it says must not fill the pipe.
    threading.Thread(target=lambda: process.stderr and process.stderr.read(), daemon=True).start()
    yield f"http://127.0.0.1:{found[1]}"
    process.terminate()
    process.wait(30)


def test_scores_come_over_the_network(address, program, client, pictures):
    service = fhec.connect(address, client)
    assert [found["id"] for found in service.programs()] == [program.fingerprint]
    seen: list[str] = []
    scores = service.predict(pictures[:2], scores=True, progress=lambda fraction, text: seen.append(text))
    clear = program.predict(pictures[:2])
    # No digit below the noise is shown.
    unit = 10.0 ** math.ceil(math.log10(program.max_abs_error))
    assert scores.shape == (2, 10) and np.abs(scores - clear).max() < program.max_abs_error + unit / 2
    best = np.take_along_axis(scores, clear.argmax(axis=1)[:, None], axis=1)
    assert (best >= scores.max(axis=1, keepdims=True) - unit).all()
    again = fhec.connect(address, client)
    assert (again.predict(pictures[0], scores=True).shape) == (1, 10)
    assert client.key[:8] in repr(again)


def test_the_server_gives_the_bits_of_this_one(address, client, keys, pictures):
    service = fhec.connect(address, client)
    service.send_keys()
    request = client.encrypt(pictures[:1])
    result = client.decrypt(service.run(request), raw=True)
    with pytest.raises(fhec.DataError):
        service.predict(np.zeros((2, 3, 28, 28)))
    assert result.shape == (1, 10)


def test_programs_that_are_not_served_are_named(address, pictures):
    from conftest import ROOT

    other = fhec.compile(ROOT / "onnx-models/exporters/sklearn-linear.onnx", toy=True)
    client = fhec.Client(other, insecure=True)
    with pytest.raises(fhec.ServiceError) as found:
        fhec.connect(address, client).send_keys()
    assert found.value.code == "no-such-program" and found.value.facts["status"] == 404


def test_no_server_and_no_contract_are_errors(client, pictures):
    with pytest.raises(fhec.ServiceError) as found:
        fhec.connect("http://127.0.0.1:1", client).predict(pictures[0])
    assert found.value.code == "unreachable" and "fhe-serve" in found.value.remedy
    with pytest.raises(fhec.UsageError, match="no address"):
        fhec.connect("127.0.0.1:8080", client)
    with pytest.raises(fhec.UsageError) as refused:
        fhec.connect("http://example.org", client, token="abc")
    assert refused.value.code == "no-tls"

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            self.send_response(500)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(fhec.ServiceError) as found:
        fhec.connect(f"http://127.0.0.1:{server.server_port}", client).programs()
    assert found.value.code == "no-contract"
    server.shutdown()


class Liar(BaseHTTPRequestHandler):
    """A server that answers as the test says: a status and bytes, or bytes without end."""

    answers: dict[str, tuple[int, bytes | None]] = {}

    def _answer(self) -> None:
        status, data = self.answers[f"{self.command} {self.path.split('?')[0].rsplit('/', 1)[-1]}"]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(status)
        self.end_headers()
        try:
            while data is None:
                self.wfile.write(b"0" * (1 << 20))
            self.wfile.write(data)
        except OSError:
            pass  # The client has had enough.

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_lies_is_found_out(client, pictures):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service = fhec.connect(f"http://127.0.0.1:{server.server_port}", client)
    request = client.encrypt(pictures[:1])
    name = "ab" * 32
    job = {"id": name, "state": "done", "fraction": 1.0}
    done = json.dumps(job).encode()

    def refused(**answers: tuple[int, bytes | None]) -> str:
        Liar.answers = {key.replace("_", " "): answer for key, answer in answers.items()}
        with pytest.raises(fhec.ServiceError) as found:
            service.run(request)
        return f"{found.value.code}: {found.value.what}"

    # Bytes without end are not held, wherever they come.
    assert "more than" in refused(POST_jobs=(200, done), GET_result=(200, None))
    assert "more than" in refused(POST_jobs=(200, None))
    assert "no-contract" in refused(POST_jobs=(500, None))
    # A job's name is no path, and what is no record of a job is none.
    for bad in ("../../v1/keys", name.upper(), name + "/cancel", 7, None):
        assert "no name" in refused(POST_jobs=(200, json.dumps({**job, "id": bad}).encode()))
    for bad in (b"[]", b"{}", b"7", b'{"state": 7}', b"[" * 100_000, b"\xff", b""):
        assert "no-contract" in refused(POST_jobs=(200, bad))
    # What a terminal would obey is spelled out.
    problem = json.dumps({"code": "bad\x1b[2J", "message": "clear\x1b[2J \u202e \ud800"}).encode()
    words = refused(POST_jobs=(422, problem))
    assert "\x1b" not in words and "\u202e" not in words and "clear" in words
    server.shutdown()
