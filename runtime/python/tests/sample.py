"""The first page of the documentation as a program: a model, pictures, and everything from compiling to encrypted scores.

Needs the wheel and NumPy alone: python sample.py MODEL PICTURES [SERVER]
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fhec

model, pictures, server_command = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
X, y = fhec.compile(model, check=False, toy=True, precision=6).interface.read(pictures)
X_test, y_test = X[16:], y[16:]

began = time.process_time()
program = fhec.compile(model, calibrate=X[:16], memory="4GiB")
print(program, f"in {time.process_time() - began:.1f} core-seconds")
sim = program.simulate(X_test, y_test)
print(sim)
client = fhec.Client(program.interface)
request = client.encrypt(X_test[:4])
server = fhec.Server(program, memory="4GiB")
server.add_keys(client.eval_keys())
began = time.process_time()
result = server.run(request, progress=True)
print(f"{(time.process_time() - began) / 4:.2f} core-seconds for one of four samples")
classes = np.array([answer.index for answer in client.decrypt(result, request=request)])
raw, clear = client.decrypt(result, raw=True), program.predict(X_test[:4])
error = np.abs(raw - clear).max()
print(f"largest error {error:.3g} of {program.max_abs_error:.3g}; classes {classes}, true {y_test[:4]}")
assert error <= program.max_abs_error
assert (raw.argmax(axis=1) == clear.argmax(axis=1)).all()
del server

if server_command:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.fhebc"
        program.save(path)
        options = ["--listen", "127.0.0.1:18099", "--memory", "6GiB", "--store", f"{folder}/store"]
        process = subprocess.Popen([server_command, "run", str(path), *options], stderr=subprocess.DEVNULL)
        try:
            service = fhec.connect("http://127.0.0.1:18099", client)
            for attempt in range(100):
                try:
                    service.programs()
                    break
                except fhec.ServiceError:
                    time.sleep(0.2)
            over_http = service.predict(X_test[:4], scores=True)
            assert (over_http.argmax(axis=1) == clear.argmax(axis=1)).all()
            print("the same classes over HTTP")
        finally:
            process.terminate()
            process.wait()
