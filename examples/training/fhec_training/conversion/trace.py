"""A network as a graph of calls (torch.fx), so that functional activations can be found and replaced."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Interpreter, Node, Proxy, Tracer
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from fhec_training.activation import PolyActivation
from fhec_training.modes import device_of, evaluating

ADVICE = (
    "write activations as modules (nn.ReLU and so on), or take branches and loops that depend on values out of `forward`; "
    "branches on shapes are followed where `convert` is given data"
)

_DROPOUTS: dict[Any, type[nn.Module]] = {
    F.dropout: nn.Dropout,
    torch.dropout: nn.Dropout,
    F.dropout1d: nn.Dropout1d,
    F.dropout2d: nn.Dropout2d,
    F.dropout3d: nn.Dropout3d,
}


class _Undecided(Exception):
    """A branch that nobody has decided yet; holds the node of its condition."""


class _Tracer(Tracer):
    def __init__(self, decisions: Iterable[bool] = ()) -> None:
        super().__init__()
        self.decisions = iter(decisions)

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        return isinstance(module, PolyActivation) or super().is_leaf_module(module, name)

    def to_bool(self, obj: Proxy) -> bool:
        for decision in self.decisions:
            return decision
        raise _Undecided(obj.node)


def trace(model: nn.Module, example: Tensor | None = None) -> GraphModule | str:
    """The graph of the network as it runs in evaluation mode, sharing its parameters; or why it has none.

    A branch that depends on the shapes of one `example` alone, whatever the number of samples, is the same for every input: it is
    decided, and the tracing begins again. One that depends on values ends it.
    """
    decisions: list[bool] = []
    with evaluating(model):
        while True:
            tracer = _Tracer(decisions)
            try:
                graph = tracer.trace(model, _left_out(model))
                break
            except _Undecided as stop:
                decided = [] if example is None else [_value(model, tracer.graph, stop.args[0], example, n) for n in (1, 2)]
                if len(set(decided)) != 1 or not isinstance(decided[0], bool):
                    return f"TraceError: a branch depends on {stop.args[0].name}"
                decisions.append(decided[0])
            except Exception as error:  # Whatever `forward` does with a proxy can raise anything.
                lines = str(error).strip().splitlines()
                return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
    _one_input(graph)
    traced = GraphModule(model, graph, type(model).__name__)
    if decisions:
        traced.graph.eliminate_dead_code()
    originals = dict(model.named_modules())
    for name, module in traced.named_modules():
        module.training = originals.get(name, model).training
    return traced


@torch.no_grad()
def _value(model: nn.Module, graph: Graph, node: Node, example: Tensor, n_samples: int) -> Any:
    """What a node is for so many samples; a tensor is none of the things that a branch may depend on."""
    part, copies = Graph(), {}
    for other in graph.nodes:
        copies[other] = part.node_copy(other, copies.__getitem__)
    part.output(copies[node])
    try:
        found = Interpreter(GraphModule(model, part)).run(example.expand(n_samples, *example.shape[1:]))
    except Exception:  # A pass that fails decides nothing.
        return None
    return None if isinstance(found, Tensor) else bool(found)


def _left_out(model: nn.Module) -> dict[str, Any]:
    """Arguments of `forward` that an encrypted call leaves out, as they are then: a branch on one of them is decided."""
    others = list(inspect.signature(model.forward).parameters.values())[1:]
    return {other.name: other.default for other in others if isinstance(other.default, (bool, int, float, str, type(None)))}


def _one_input(graph: Graph) -> None:
    """Takes the arguments that are left out from a graph, with the checks that tracing puts there."""
    for node in [node for node in graph.nodes if node.op == "placeholder"][1:]:
        checks = [user for first in node.users for user in (*first.users, first)]
        if all(user.op == "call_function" and not user.users.keys() - set(checks) for user in checks):
            for user in checks:
                graph.erase_node(user)
            graph.erase_node(node)


def last(traced: GraphModule) -> str | None:
    """The module or call whose result is the network's."""
    (output,) = (node for node in traced.graph.nodes if node.op == "output")
    given = output.args[0]
    if not isinstance(given, Node):
        return None
    return str(given.target) if given.op == "call_module" else place(given)


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
