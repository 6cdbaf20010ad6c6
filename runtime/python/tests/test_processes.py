"""Threads, processes, signals and memory."""

from __future__ import annotations

import _thread
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import fhec


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_two_servers_run_at_once(program, client, keys, pictures):
    """Each of two threads sees the other one inside its own evaluation: the lock of the interpreter is released."""
    request = client.encrypt(pictures)
    expected = None
    servers = [fhec.Server(program, memory="2GiB", threads=1, insecure=True) for _ in range(2)]
    spans: dict[int, tuple[float, float]] = {}
    results: dict[int, bytes] = {}

    def run(i: int) -> None:
        servers[i].add_keys(keys)
        began = time.monotonic()
        results[i] = servers[i].run(request).to_bytes()
        spans[i] = (began, time.monotonic())

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert max(span[0] for span in spans.values()) < min(span[1] for span in spans.values()), spans
    with fhec.Server(program, memory="2GiB", threads=2, insecure=True) as server:
        server.add_keys(keys)
        expected = server.run(request).to_bytes()
    assert results[0] == results[1] == expected


def test_python_goes_on_while_a_server_runs(program, server, client, pictures):
    request = client.encrypt(np.concatenate([pictures] * 3))
    done = threading.Event()
    thread = threading.Thread(target=lambda: (server.run(request), done.set()))
    thread.start()
    ticks = 0
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 20


def test_interrupts_end_a_run_within_a_layer(server, client, pictures):
    request = client.encrypt(np.concatenate([pictures] * 30))
    began = time.monotonic()
    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        server.run(request)
    assert time.monotonic() - began < 10
    assert client.decrypt(server.run(client.encrypt(pictures[0])), scores=True).shape == (1, 10)


def test_interrupts_end_a_compilation(pictures):
    from conftest import LENET

    threading.Timer(0.2, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        fhec.compile(LENET, calibrate=np.concatenate([pictures] * 400), toy=True)


def test_a_thousand_servers_leak_nothing(program, client, keys, pictures):
    request = client.encrypt(pictures[0])

    def cycle(n: int) -> None:
        for _ in range(n):
            server = fhec.Server(program, memory="2GiB", threads=1, insecure=True)
            server.add_keys(keys)
            del server
            fhec.Program.load(data).interface

    data = program.to_bytes()
    cycle(100)
    time.sleep(0.2)
    before, threads = resident(), threading.active_count()
    cycle(1000)
    time.sleep(0.5)
    grown = resident() - before
    assert grown < 32 << 20, f"{grown} bytes more after 1000 cycles"
    assert len(os.listdir("/proc/self/task")) < threads + 20
    with fhec.Server(program, memory="2GiB", insecure=True) as server:
        server.add_keys(keys)
        server.run(request)


def test_a_thousand_clients_leak_nothing(program, pictures):
    interface = program.interface

    def cycle(n: int) -> None:
        for _ in range(n):
            fhec.Client(interface, insecure=True).encrypt(pictures[0])

    cycle(50)
    before = resident()
    cycle(1000)
    assert resident() - before < 32 << 20


def _in_child(connection, data: bytes, key: str, request: bytes, keys: bytes) -> None:
    try:
        program = fhec.Program.load(data)
        with fhec.Server(program, memory="2GiB", insecure=True) as server:
            server.add_keys(keys)
            result = server.run(request).to_bytes()
        connection.send(result)
    except Exception as error:  # noqa: BLE001
        connection.send(repr(error))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_started_after_use_work(method, program, client, keys, server, pictures):
    request = client.encrypt(pictures[0])
    expected = server.run(request).to_bytes()
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    arguments = (theirs, program.to_bytes(), client.key, request.to_bytes(), keys.to_bytes())
    process = context.Process(target=_in_child, args=arguments)
    process.start()
    assert ours.poll(120), "the child hangs"
    assert ours.recv() == expected
    process.join()


def forked(answer: Callable[[], str]) -> str:
    """What `answer` gives in a child of this process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, answer().encode())
        finally:
            os._exit(0)
    os.close(write)
    try:
        assert select.select([read], [], [], 60)[0], "the child hangs"
        return os.read(read, 1000).decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)


def code(call: Callable[[], object]) -> str:
    try:
        return repr(call())
    except fhec.FhecError as error:
        return error.code


def test_a_forked_server_goes_on(server, client, pictures):
    request = client.encrypt(pictures[0])
    expected = server.run(request).to_bytes()
    assert forked(lambda: code(lambda: server.run(request).to_bytes() == expected)) == "True"
    assert server.run(request).to_bytes() == expected


def test_a_fork_while_something_runs_is_refused_in_the_child(server, client, pictures):
    request = client.encrypt(np.concatenate([pictures] * 5))
    running = threading.Event()
    thread = threading.Thread(target=lambda: server.run(request, progress=lambda fraction, text: running.set()))
    thread.start()
    assert running.wait(60)
    assert forked(lambda: code(lambda: server.run(request))) == "forked"
    thread.join()


def test_import_needs_numpy_alone():
    code = "import sys; sys.modules.update(tqdm=None, torch=None, onnx=None, pandas=None); import fhec; print(fhec.__version__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip()
    code = "import fhec.torch; fhec.torch.convert"
    found = subprocess.run([sys.executable, "-c", f"import sys; sys.modules['fhec_training']=None; {code}"], capture_output=True)
    assert b"pip install './examples/training[torch]'" in found.stderr
