"""A server on the network: the contract of `fhe-serve` (runtime/serve/openapi.json), spoken by a client that keeps its secret key."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import tempfile
import time
from typing import IO, TYPE_CHECKING, Any, Literal, overload
from urllib.parse import urlsplit

import numpy as np

from fhec import _progress
from fhec._errors import DataError, ServiceError, UsageError
from fhec._fhec import Ciphertexts, Client, harmless

if TYPE_CHECKING:
    import ssl

    from numpy.typing import ArrayLike, NDArray

    from fhec._results import Answer

_REMEDIES = {
    "no-token": "pass token=..., as `fhe-serve token add` gave it",
    "unknown-token": "ask whoever runs the server for a token",
    "expired-token": "ask whoever runs the server for a new token",
    "no-such-program": "connect with a client of a program that is served there: Service.programs() lists them",
    "no-keys": "send the evaluation keys first: Service.send_keys()",
}
#: Seconds that one request waits for an end before it asks again.
_WAIT = 20
#: Times that a request is tried again where the server says that it may be.
_RETRIES = 60
#: Most bytes of an answer that is no result.
_ANSWER = 4 << 20


def connect(
    url: str, client: Client, *, token: str | None = None, timeout: float = 600, context: ssl.SSLContext | None = None
) -> Service:
    """Connects a client with a server that runs `fhe-serve`.

    The server gets evaluation keys, when they are first needed, and encrypted inputs; it gives encrypted results.

    Args:
        url: where it is, such as "http://127.0.0.1:8080" or "https://example.org".
        client: whose keys encrypt and decrypt; its program must be served there.
        token: what says who you are, where the server wants to know. It is not sent over http to other machines.
        timeout: seconds without an answer after which a request fails.
        context: certificates to trust, for https.
    """
    return Service(url, client, token=token, timeout=timeout, context=context)


class Service:
    """A client with a server on the network; `connect` makes one."""

    def __init__(
        self, url: str, client: Client, *, token: str | None = None, timeout: float = 600, context: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is no address", "url", 'give one such as "http://127.0.0.1:8080"')
        if token is not None and parts.scheme == "http" and not _is_local(parts.hostname):
            raise UsageError(f"a token over http to {parts.hostname} can be read on its way", "no-tls", "use https")
        self._parts, self._client, self._timeout, self._context = parts, client, timeout, context
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._program = client.interface.program
        self._has_keys = False

    def programs(self) -> list[dict[str, Any]]:
        """The programs that are served."""
        return list(self._json("GET", "/v1/programs"))

    def send_keys(self, *, progress: _progress.Progress = None) -> None:
        """Makes evaluation keys and sends them, unless the server has them already. They go through a file, one at a time."""
        path = f"/v1/programs/{self._program}/keys/{self._client.key}"
        try:
            state = self._record("GET", path)
        except ServiceError as error:
            if error.facts.get("status") != 404 or error.code == "no-such-program":
                raise
            state = {"state": "none"}
        if state["state"] not in ("ready", "checking"):
            with tempfile.TemporaryDirectory(prefix="fhec-") as folder:
                file = os.path.join(folder, "keys.evk")
                self._client.save_eval_keys(file, progress=progress)
                with open(file, "rb") as body:
                    state = self._record("PUT", f"{path}?wait={_WAIT}", body)
        while state["state"] == "checking":
            state = self._record("GET", f"{path}?wait={_WAIT}")
        if state["state"] != "ready":
            problem = state["error"] if isinstance(state.get("error"), dict) else {}
            message = harmless(str(problem.get("message", f"the keys are {state['state']}")))
            raise ServiceError(message, harmless(str(problem.get("code", "keys"))), "send them again")
        self._has_keys = True

    def run(self, request: Ciphertexts, *, progress: _progress.Progress = None) -> Ciphertexts:
        """Evaluates one encrypted sample there."""
        shown = _progress.start(progress)
        job = self._record("POST", f"/v1/programs/{self._program}/jobs?key={self._client.key}", request.to_bytes())
        if not re.fullmatch("[0-9a-f]{64}", str(job.get("id"))):
            raise self._no_contract("the job has no name")
        path = f"/v1/jobs/{job['id']}"
        pause = 0.02
        try:
            while job["state"] in ("queued", "running"):
                if shown is not None:
                    shown(_fraction(job.get("fraction")), harmless(str(job.get("layer") or job["state"])))
                time.sleep(pause)
                pause = min(pause * 1.5, 1.0)
                job = self._record("GET", path)
        except BaseException:
            # Nobody waits for the result any more, whatever ended the waiting.
            self._forget("POST", f"{path}/cancel")
            raise
        finally:
            _progress.end(shown)
        # As long as this client's interface says: a server could send bytes without end.
        result = Ciphertexts.load(self._send("GET", f"{path}/result", limit=self._client.interface.result_bytes))
        self._forget("DELETE", path)
        return result

    @overload
    def predict(
        self, x: ArrayLike | str | os.PathLike[str], *, scores: Literal[False] = False, progress: _progress.Progress = None
    ) -> list[Answer]: ...
    @overload
    def predict(
        self, x: ArrayLike | str | os.PathLike[str], *, scores: Literal[True], progress: _progress.Progress = None
    ) -> NDArray[np.float64]: ...
    def predict(
        self, x: ArrayLike | str | os.PathLike[str], *, scores: bool = False, progress: _progress.Progress = None
    ) -> list[Answer] | NDArray[np.float64]:
        """What results say of samples, encrypted here and evaluated there: an `Answer` for each, or with `scores=True` an array of
        [samples, scores], which are for you only (see `Client.decrypt`)."""
        requests = [self._client.encrypt(sample) for sample in self._each(x)]
        if not self._has_keys:
            self.send_keys(progress=progress)
        answers = [(request, self.run(request, progress=progress)) for request in requests]
        if scores:
            return np.concatenate([self._client.decrypt(result, request=request, scores=True) for request, result in answers])
        return [answer for request, result in answers for answer in self._client.decrypt(result, request=request)]

    def _each(self, x: Any) -> list[Any]:
        """The samples one by one: a job has one."""
        face = self._client.interface
        if isinstance(x, dict):
            return _split(x, dict(face.inputs))
        is_path = isinstance(x, (str, os.PathLike)) or (isinstance(x, list) and bool(x) and isinstance(x[0], (str, os.PathLike)))
        return list(face.read(x)[0]) if is_path else _one_by_one(x, face.input_shape)

    def __repr__(self) -> str:
        return f"<fhec.Service at {self._parts.geturl()} for key {self._client.key[:8]}…>"

    def _json(self, method: str, path: str, body: bytes | IO[bytes] | None = None) -> Any:
        try:
            return json.loads(self._send(method, path, body))
        except (ValueError, RecursionError) as error:
            raise self._no_contract("an answer that is no JSON") from error

    def _record(self, method: str, path: str, body: bytes | IO[bytes] | None = None) -> dict[str, Any]:
        """What the server says of keys or of a job."""
        record = self._json(method, path, body)
        if not isinstance(record, dict) or not isinstance(record.get("state"), str):
            raise self._no_contract("an answer without a state")
        return record

    def _no_contract(self, what: str) -> ServiceError:
        return ServiceError(f"{self._parts.geturl()}: {what}", "no-contract", "check the address: this is no server of `fhe-serve`")

    def _forget(self, method: str, path: str) -> None:
        try:
            self._send(method, path)
        except ServiceError:
            pass

    def _send(self, method: str, path: str, body: bytes | IO[bytes] | None = None, limit: int = _ANSWER) -> bytes:
        for attempt in range(_RETRIES + 1):
            status, retry_after, data = self._once(method, path, body, max(limit, _ANSWER))
            if status < 300 and len(data) > limit:
                raise self._no_contract(f"an answer of more than {limit} bytes")
            if status < 300:
                return data
            if status not in (429, 503) or retry_after is None or attempt == _RETRIES:
                raise self._refusal(status, data)
            time.sleep(min(retry_after, 30))
        raise AssertionError("the last attempt raises")

    def _once(self, method: str, path: str, body: bytes | IO[bytes] | None, limit: int) -> tuple[int, float | None, bytes]:
        host, port = self._parts.hostname or "", self._parts.port
        connection: http.client.HTTPConnection
        if self._parts.scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/octet-stream"
            if not isinstance(body, bytes):
                body.seek(0)
                headers["Content-Length"] = str(os.fstat(body.fileno()).st_size)
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, body=body, headers=headers)
            answer = connection.getresponse()
            wait = answer.getheader("Retry-After")
            return answer.status, float(wait) if wait and wait.isdecimal() else None, answer.read(limit + 1)
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(
                f"{self._parts.geturl()}: {harmless(str(error)) or type(error).__name__}",
                "unreachable",
                "check the address, and whether `fhe-serve run` is running there",
            ) from error
        finally:
            connection.close()

    def _refusal(self, status: int, data: bytes) -> ServiceError:
        try:
            problem = json.loads(data)
            code, message = harmless(str(problem["code"])), harmless(str(problem["message"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            code, message = "no-contract", f"an answer with status {status} that is not of fhe-serve"
        remedy = _REMEDIES.get(code, "see docs/python.md, and the log of the server")
        return ServiceError(f"{self._parts.geturl()}: {message}", code, remedy, {"status": status})


def _fraction(said: object) -> float:
    return min(max(float(said), 0.0), 1.0) if isinstance(said, (int, float)) else 0.0


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(arrays: dict[str, Any], inputs: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Arrays for several inputs as one dictionary for each sample; what has no sample axis is one sample."""
    parts = {}
    for name, given in arrays.items():
        array = np.asarray(given)
        shape = inputs.get(name, list(array.shape))
        parts[name] = array[None] if list(array.shape) == shape[1:] else array
    counts = {name: len(array) if array.ndim else 0 for name, array in parts.items()}
    if len(set(counts.values())) != 1:
        found = ", ".join(f"{count} of {name}" for name, count in counts.items()) or "none"
        raise DataError(f"samples: {found}", "shape", "give every input of the model as many samples", {"found": counts})
    return [{name: array[i] for name, array in parts.items()} for i in range(next(iter(counts.values())))]


def _one_by_one(x: Any, shape: tuple[int, int, int]) -> list[Any]:
    array = np.asarray(x)
    one = int(np.prod(shape))
    if array.size == one:
        return [array]
    if array.ndim < 2 or array.size != one * array.shape[0]:
        raise DataError(
            f"samples: an array of {list(array.shape)}, but the model takes [samples, {', '.join(map(str, shape))}]",
            "shape",
            "resize, crop or convert the input as the images were on which the model was trained",
            {"dims": list(array.shape), "wanted": list(shape)},
        )
    return list(array)
