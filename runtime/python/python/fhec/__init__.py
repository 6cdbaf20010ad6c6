"""Encrypted inference for convolutional networks.

A model becomes a program (`compile`), a client makes keys and encrypts (`Client`), a server evaluates without seeing anything
(`Server`), and the client decrypts:

    program = fhec.compile("lenet.onnx", calibrate=images)
    client = fhec.Client(program.interface)
    server = fhec.Server(program)
    server.add_keys(client.eval_keys())
    answers = client.decrypt(server.run(client.encrypt(images[:4])))

`levels` says what a model costs, `Program.simulate` what the noise of encryption does to a data set, `report` shows a page, and
`run_dataset` measures encrypted accuracy and time. Files are those of the commands `fhec` and `fhe-run`, both ways.
"""

import os

from fhec import torch
from fhec._compile import compile, levels, report, simulate
from fhec._dataset import run_dataset
from fhec._errors import (
    DataError,
    DoubtWarning,
    FhecError,
    FileError,
    InternalError,
    MismatchError,
    ModelError,
    ResourceError,
    ScoresWarning,
    ServiceError,
    UsageError,
)
from fhec._fhec import Ciphertexts, Client, EvalKeys, Interface, Program, Server, __version__, after_fork
from fhec._http import Service, connect
from fhec._results import Answer, DatasetRun, LayerLoss, Levels, Report, Simulation

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
del os, after_fork

__all__ = [
    "Answer",
    "Ciphertexts",
    "Client",
    "DataError",
    "DatasetRun",
    "DoubtWarning",
    "EvalKeys",
    "FhecError",
    "FileError",
    "Interface",
    "InternalError",
    "LayerLoss",
    "Levels",
    "MismatchError",
    "ModelError",
    "Program",
    "Report",
    "ResourceError",
    "ScoresWarning",
    "Server",
    "Service",
    "ServiceError",
    "Simulation",
    "UsageError",
    "__version__",
    "compile",
    "connect",
    "levels",
    "report",
    "run_dataset",
    "simulate",
    "torch",
]
