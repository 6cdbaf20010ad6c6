"""A network as a graph of calls (torch.fx), so that functional activations can be found and replaced."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node, Tracer
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from fhec_training.activation import PolyActivation
from fhec_training.modes import device_of, evaluating

ADVICE = (
    "write activations as modules (nn.ReLU and so on), or take branches and loops that depend on tensor values out of `forward`"
)

_DROPOUTS: dict[Any, type[nn.Module]] = {
    F.dropout: nn.Dropout,
    torch.dropout: nn.Dropout,
    F.dropout1d: nn.Dropout1d,
    F.dropout2d: nn.Dropout2d,
    F.dropout3d: nn.Dropout3d,
}


class _Tracer(Tracer):
    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        return isinstance(module, PolyActivation) or super().is_leaf_module(module, name)


def trace(model: nn.Module) -> GraphModule | str:
    """The graph of the network as it runs in evaluation mode, sharing its parameters; or why it has none."""
    try:
        with evaluating(model):
            graph = _Tracer().trace(model)
    except Exception as error:  # Whatever `forward` does with a proxy can raise anything.
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
    traced = GraphModule(model, graph, type(model).__name__)
    originals = dict(model.named_modules())
    for name, module in traced.named_modules():
        module.training = originals.get(name, model).training
    return traced


def place(node: Node) -> str:
    """Where a call is made: the module whose `forward` makes it, and the name of the call."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack), "") if stack else ""
    return f"{path}.{node.name}" if path else node.name


def replace_by_module(traced: GraphModule, node: Node, module: nn.Module) -> str:
    """Puts a module in the place of a call on one tensor; returns the name that it gets."""
    name = base = place(node)
    known, suffix = dict(traced.named_modules()), 1
    while name in known or hasattr(traced, name):
        suffix += 1
        name = f"{base}_{suffix}"
    module.train(traced.training)
    traced.add_submodule(name, module)
    with traced.graph.inserting_before(node):
        node.replace_all_uses_with(traced.graph.call_module(name, (operand(node),)))
    traced.graph.erase_node(node)
    return name


def operand(node: Node) -> Any:
    """The tensor that a call of one tensor works on."""
    return node.args[0] if node.args else node.kwargs.get("input")


def parameters(node: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The other arguments of such a call."""
    return tuple(node.args[1:]), {key: value for key, value in node.kwargs.items() if key not in ("input", "inplace")}


def restore_dropout(traced: GraphModule) -> None:
    """Functional dropout was traced in evaluation mode, where it does nothing: modules let it follow the mode again."""
    for node in list(traced.graph.nodes):
        kind = _DROPOUTS.get(node.target) if node.op == "call_function" else None
        if kind is not None:
            arguments, keywords = parameters(node)
            probability = keywords.get("p", arguments[0] if arguments else 0.5)
            replace_by_module(traced, node, kind(probability))


class _Recorder(TorchFunctionMode):
    """Notes the calls that are made while no module of PyTorch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []
        self.depth = 0

    def __torch_function__(self, call, types, args=(), kwargs=None):
        if self.depth == 0:
            name = getattr(call, "__name__", "")
            self.calls.append(name if getattr(Tensor, name, None) is call else call)
        return call(*args, **(kwargs or {}))

    def enter(self, *_: Any) -> None:
        self.depth += 1

    def leave(self, *_: Any) -> None:
        self.depth -= 1


@torch.no_grad()
def recorded_calls(model: nn.Module, images: Tensor) -> list[Any]:
    """Every torch function, and method by name, that a pass in evaluation mode calls: for networks that cannot be traced."""
    recorder, is_leaf = _Recorder(), _Tracer().is_leaf_module
    leaves = [module for module in model.modules() if is_leaf(module, "")]
    handles = [module.register_forward_pre_hook(recorder.enter) for module in leaves]
    handles += [module.register_forward_hook(recorder.leave) for module in leaves]
    try:
        with evaluating(model), recorder:
            model(images.to(device_of(model)))
    finally:
        for handle in handles:
            handle.remove()
    return recorder.calls
