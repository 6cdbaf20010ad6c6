"""A program on Ray Serve, under the HTTP contract of `fhe-serve`: `fhec.connect` and `fhe-run remote` are its clients.

    python examples/ray_serve.py lenet.fhebc --store keys --replicas 2

A door takes requests and keeps jobs. Evaluators, on as many machines as the cluster has, each hold the evaluation keys of some
clients; the id of a client's key is the multiplexed model id, so Ray prefers an evaluator that has them. The store is a folder that
all machines see. A job whose evaluator dies begins again on another. There are no tokens, quotas or TLS here: put what faces the
world before it.
"""

import argparse
import asyncio
import contextlib
import hashlib
import re
import time
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from ray import serve
from ray.exceptions import RayActorError

import fhec

CLIENTS = 4  # whose keys an evaluator holds at a time
ATTEMPTS = 3  # times that a job is begun
api = FastAPI()


class Problem(Exception):
    """A refusal: status, code, message."""


@api.exception_handler(Problem)
async def refused(_: Request, problem: Problem) -> Response:
    status, code, message = problem.args
    return JSONResponse({"code": code, "message": message}, status)


class Keys:
    """The keys of one client in an evaluator, until Ray wants the room for another's."""

    def __init__(self, server: fhec.Server, path: Path):
        self.server, self.id = server, server.add_keys(path)

    def __del__(self):
        with contextlib.suppress(fhec.FhecError, AttributeError):
            self.server.remove_keys(self.id)


@serve.deployment(max_ongoing_requests=2, health_check_period_s=2, health_check_timeout_s=60)
class Evaluator:
    def __init__(self, program: str, store: Path, memory: str | None, insecure: bool):
        self.store = store
        self.server = fhec.Server(program, memory=memory, clients=CLIENTS, insecure=insecure)

    @serve.multiplexed(max_num_models_per_replica=CLIENTS)
    async def keys(self, key: str) -> Keys:
        return await asyncio.to_thread(Keys, self.server, self.store / f"{key}.evk")

    async def check(self) -> str:
        return (await self.keys(serve.get_multiplexed_model_id())).id

    async def run(self, request: bytes) -> bytes:
        await self.check()
        return (await asyncio.to_thread(self.server.run, request)).to_bytes()


@serve.deployment(max_ongoing_requests=1000)
@serve.ingress(api)
class Door:
    def __init__(self, program: str, store: Path, evaluators):
        self.program, self.store, self.evaluators = fhec.Program.load(program), store, evaluators
        self.face, self.jobs, self.results, self.tasks = self.program.interface, {}, {}, {}

    def path(self, program: str, key: str) -> Path:
        if program != self.program.fingerprint:
            raise Problem(404, "no-such-program", "this program is not served here")
        if not re.fullmatch("[0-9a-f]{32}", key):
            raise Problem(400, "bad-key", "the id of a key is 32 hexadecimal digits")
        return self.store / f"{key}.evk"

    def job(self, job: str) -> dict:
        if job not in self.jobs:
            raise Problem(404, "no-such-job", "there is no such job")
        return self.jobs[job]

    @api.get("/v1/programs")
    async def programs(self):
        sizes = {name: getattr(self.face, name) for name in ("key_file_bytes", "input_bytes", "result_bytes")}
        about = {"id": self.program.fingerprint, "name": self.program.name, "predicted_seconds": self.program.seconds}
        return [{**about, **sizes, "interface_bytes": len(self.face.to_bytes())}]

    @api.get("/v1/programs/{program}/interface")
    async def interface(self, program: str):
        self.path(program, "0" * 32)
        return Response(self.face.to_bytes(), media_type="application/octet-stream")

    @api.get("/v1/programs/{program}/keys/{key}")
    async def get_keys(self, program: str, key: str):
        if not self.path(program, key).exists():
            raise Problem(404, "no-keys", "there are no evaluation keys of this key")
        total = self.face.key_file_bytes
        return {"program": program, "key": key, "state": "ready", "received_bytes": total, "total_bytes": total}

    @api.put("/v1/programs/{program}/keys/{key}")
    async def put_keys(self, program: str, key: str, request: Request):
        path = self.path(program, key)
        if path.exists():
            return await self.get_keys(program, key)
        if request.headers.get("content-length") != str(self.face.key_file_bytes):
            raise Problem(413, "wrong-length", f"keys of this program have {self.face.key_file_bytes} bytes")
        part = path.with_suffix(f".{time.time_ns()}")
        try:
            with part.open("wb") as file:
                async for piece in request.stream():
                    file.write(piece)
            part.rename(path)
            if await self.evaluators.options(multiplexed_model_id=key).check.remote() != key:
                raise fhec.MismatchError("these are the keys of another client", "other-key")
        except BaseException as error:
            part.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            cause = getattr(error, "cause", error)
            raise Problem(422, cause.code, cause.what) if isinstance(cause, fhec.FhecError) else error
        return await self.get_keys(program, key)

    @api.post("/v1/programs/{program}/jobs", status_code=202)
    async def post_job(self, program: str, key: str, request: Request):
        await self.get_keys(program, key)
        if int(request.headers.get("content-length", "0")) > 2 * self.face.input_bytes:
            raise Problem(413, "wrong-length", f"an input of this program has {self.face.input_bytes} bytes")
        body = await request.body()
        job = hashlib.sha256(f"{program}{key}".encode() + body).hexdigest()
        if job not in self.jobs:
            facts = {"id": job, "program": program, "key": key, "submitted_ms": time.time_ns() // 10**6}
            self.jobs[job] = {**facts, "state": "running", "fraction": 0.0, "attempts": 0}
            self.tasks[job] = asyncio.create_task(self.evaluate(self.jobs[job], body))
        return self.jobs[job]

    async def evaluate(self, job: dict, body: bytes) -> None:
        evaluators = self.evaluators.options(multiplexed_model_id=job["key"])
        while job["state"] == "running":
            job["attempts"] += 1
            try:
                self.results[job["id"]] = await evaluators.run.remote(body)
                job.update(state="done", fraction=1.0)
            except asyncio.CancelledError:
                job.update(state="cancelled")
            except Exception as error:
                if isinstance(error, RayActorError) and job["attempts"] < ATTEMPTS:
                    continue
                cause = getattr(error, "cause", error)
                problem = {"code": getattr(cause, "code", "failed"), "message": getattr(cause, "what", str(cause))}
                job.update(state="failed", error=problem)
        job.update(finished_ms=time.time_ns() // 10**6)

    @api.get("/v1/jobs/{job}")
    async def get_job(self, job: str):
        return self.job(job)

    @api.get("/v1/jobs/{job}/result")
    async def get_result(self, job: str):
        found = self.job(job)
        if "error" in found:
            raise Problem(422, found["error"]["code"], found["error"]["message"])
        if found["state"] != "done":
            raise Problem(409, "no-result", f"the job is {found['state']}")
        return Response(self.results[job], media_type="application/octet-stream")

    @api.post("/v1/jobs/{job}/cancel")
    async def cancel(self, job: str):
        if self.job(job)["state"] == "running":
            self.tasks[job].cancel()
            await asyncio.wait([self.tasks[job]])
        return self.job(job)

    @api.delete("/v1/jobs/{job}", status_code=204)
    async def delete(self, job: str):
        if self.job(job)["state"] == "running":
            raise Problem(409, "not-at-its-end", "cancel the job first")
        for kept in (self.jobs, self.results, self.tasks):
            kept.pop(job, None)


def application(program: str, store: Path, *, replicas: int = 2, memory: str | None = None, insecure: bool = False):
    """The application, for `serve.run`."""
    store.mkdir(parents=True, exist_ok=True)
    return Door.bind(program, store, Evaluator.options(num_replicas=replicas).bind(program, store, memory, insecure))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="program file, as `fhec build` writes it")
    parser.add_argument("--store", type=Path, default=Path("keys"), help="folder for evaluation keys, seen by all machines")
    parser.add_argument("--replicas", type=int, default=2, help="evaluators")
    parser.add_argument("--memory", help="of one evaluator, such as 4GiB")
    parser.add_argument("--port", type=int, default=8080)
    asked = parser.parse_args()
    serve.start(http_options={"host": "127.0.0.1", "port": asked.port})
    application = application(str(asked.program.resolve()), asked.store.resolve(), replicas=asked.replicas, memory=asked.memory)
    serve.run(application, blocking=True)
