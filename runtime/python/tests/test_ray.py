"""The adapter for Ray Serve on a local cluster, with two evaluators of which one is killed: `cargo xtask python --ray`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from conftest import ROOT

import fhec

pytestmark = pytest.mark.ray
PORT = 18123


@pytest.fixture(scope="module")
def address(program, tmp_path_factory):
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", RAY_DEDUP_LOGS="0")
    # On a busy machine workers of Ray's own niceness, 15, do not get to start within the five seconds after which Ray kills them.
    os.environ.update(RAY_worker_niceness="0", RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S="50")
    ray = pytest.importorskip("ray")
    from ray import serve

    sys.path.insert(0, str(ROOT / "examples"))
    # Workers import it, too.
    os.environ["PYTHONPATH"] = str(ROOT / "examples")
    import ray_serve

    folder = tmp_path_factory.mktemp("ray")
    program.save(folder / "lenet.fhebc")
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=256 << 20, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    application = ray_serve.application(str(folder / "lenet.fhebc"), folder / "store", memory="2GiB", insecure=True)
    serve.run(application)
    yield f"http://127.0.0.1:{PORT}"
    serve.shutdown()
    ray.shutdown()


def evaluators() -> list[int]:
    """Processes of the evaluators."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline") as file:
                if name.isdigit() and "ServeReplica" in (line := file.read()) and "Evaluator" in line:
                    found.append(int(name))
        except OSError:
            continue
    return found


def test_the_client_of_fhe_serve_is_served(address, program, client, pictures):
    service = fhec.connect(address, client)
    assert [found["id"] for found in service.programs()] == [program.fingerprint]
    scores = service.predict(pictures[:3], scores=True)
    assert (scores.argmax(axis=1) == program.predict(pictures[:3]).argmax(axis=1)).all()


def test_results_are_those_of_the_program(address, program, client, pictures):
    service = fhec.connect(address, client)
    service.send_keys()
    request = client.encrypt(pictures[0])
    scores = client.decrypt(service.run(request), request=request, raw=True)
    assert np.abs(scores - program.predict(pictures[0])).max() < program.max_abs_error


def test_refusals_are_those_of_the_contract(address, program, client, pictures):
    stranger = fhec.Client(program, insecure=True)
    with pytest.raises(fhec.ServiceError) as found:
        fhec.connect(address, stranger).run(stranger.encrypt(pictures[0]))
    assert found.value.code == "no-keys" and found.value.facts["status"] == 404
    other = fhec.Client(fhec.compile(ROOT / "onnx-models/exporters/sklearn-linear.onnx", toy=True), insecure=True)
    with pytest.raises(fhec.ServiceError) as found:
        fhec.connect(address, other).send_keys()
    assert found.value.code == "no-such-program"
    with pytest.raises(fhec.ServiceError) as found:
        fhec.connect(address, client).run(fhec.Ciphertexts.load(stranger.encrypt(pictures[0]).to_bytes()))
    assert found.value.code == "unknown-key"


def test_jobs_survive_a_killed_evaluator(address, program, client, pictures):
    service = fhec.connect(address, client)
    service.send_keys()
    clients = [fhec.Client(program, insecure=True) for _ in range(2)]
    services = [fhec.connect(address, one) for one in clients]
    [one.send_keys() for one in services]
    before = evaluators()
    assert len(before) == 2, before
    expected = program.predict(pictures)
    errors: list[float] = []

    def work(own: fhec.Client, one: fhec.Service) -> None:
        for picture, exact in 3 * list(zip(pictures, expected)):
            request = own.encrypt(picture)
            scores = own.decrypt(one.run(request), request=request, raw=True)
            errors.append(float(np.abs(scores - exact).max()))

    threads = [threading.Thread(target=work, args=both) for both in zip(clients, services)]
    [thread.start() for thread in threads]
    time.sleep(1.0)
    os.kill(before[0], signal.SIGKILL)
    [thread.join() for thread in threads]
    assert len(errors) == 60 and max(errors) < program.max_abs_error
    for _ in range(120):
        now = evaluators()
        if len(now) == 2 and before[0] not in now:
            break
        time.sleep(0.5)
    assert len(now) == 2 and before[0] not in now, (before, now)
    assert (service.predict(pictures[:2], scores=True).argmax(axis=1) == expected[:2].argmax(axis=1)).all()
