"""`convert`: a trained network with ReLU and its like becomes one with polynomials, ready to be trained on.

Modules are found by their type, functional calls by tracing the network. What cannot be encrypted and has no replacement
stays, and is told: in a `ConversionWarning`, and in `network.conversion`.
"""

from __future__ import annotations

import warnings
from math import ceil

from torch import Tensor, nn
from torch.fx import GraphModule

from fhec_training import torch_functions
from fhec_training.activation import PolyActivation, activations
from fhec_training.conversion import left, pools, trace
from fhec_training.conversion.account import Conversion, ConversionError, ConversionWarning, Left, Replaced
from fhec_training.functions import Function
from fhec_training.modes import device_of
from fhec_training.ranges import Data, inputs_of, original_reach

__all__ = ["Conversion", "ConversionError", "ConversionWarning", "Left", "Replaced", "convert"]

_RANGE_STEP = 1 / 16
"""Measured ranges are rounded up to a multiple of this."""


def convert(
    model: nn.Module,
    data: Data | None = None,
    *,
    degree: int = 2,
    c: float = 2.0,
    bits: int = 10,
    quantile: float = 0.99,
    margin: float = 1.1,
    max_pool: str = "keep",
) -> nn.Module:
    """Replaces every activation by a polynomial fitted on [-c, c], and returns the network to use from now on.

    Modules are replaced in place. A network that also calls activations as functions or methods is returned as a
    `torch.fx.GraphModule` with the same parameters under the same names.

    With `data` (a batch, or a loader of which a few batches are taken) every layer gets a range of its own: `margin`
    times what the part `quantile` of its inputs stays below, measured in evaluation mode before the replacement.
    `max_pool="average"` also makes max pooling average pooling. Functions that a quadratic cannot bend, such as tanh,
    get degree 3. Everything needs some training afterwards: `fine_tune`.

    Raises `ConversionError` where nothing was found; warns of what is left.
    """
    if max_pool not in ("keep", "average"):
        raise ValueError(f'max_pool is "keep" or "average", not {max_pool!r}')
    account = Conversion()
    work = _Work(account, degree, c, bits, max_pool == "average")
    root = work.module("(the model)", model)
    if root is not None:
        root.train(model.training)
        model = root
    else:
        work.modules_inside(model)
        model = work.calls_inside(model, data)
    if not account.replaced:
        raise ConversionError(_nothing(account))
    if data is not None:
        _measure(model, data, quantile, margin)
    _describe(model, account)
    model.conversion = account
    if account.left or account.untraced:
        warnings.warn(f"not everything was converted\n{account}", ConversionWarning, stacklevel=2)
    return model


class _Work:
    """One conversion under way."""

    def __init__(self, account: Conversion, degree: int, c: float, bits: int, averages: bool) -> None:
        self.account, self.degree, self.c, self.bits, self.averages = account, degree, c, bits, averages

    def activation(self, function: Function) -> PolyActivation:
        return PolyActivation(function.sensible_degree(self.degree), self.c, self.bits, function)

    def module(self, name: str, module: nn.Module) -> nn.Module | None:
        """What replaces a module, if anything does; notes it, or why nothing does where something should."""
        function = torch_functions.of_module(module)
        pool = pools.average(module) if self.averages else None
        kind = type(module).__name__
        if function is not None:
            replacement: nn.Module | None = self.activation(function)
        elif isinstance(pool, nn.Module):
            replacement = pool
        else:
            replacement = None
            remedy = f"it cannot become an average, {pool}" if isinstance(pool, str) else left.of_module(module)
            if remedy:
                self.account.left.append(Left(name, kind, remedy))
        if replacement is not None:
            self.account.replaced.append(Replaced(name, kind, type(replacement).__name__))
        return replacement

    def modules_inside(self, model: nn.Module) -> None:
        """Modules in place; one that is used under several names keeps being one."""
        done: dict[nn.Module, nn.Module | None] = {}
        for path, parent in list(model.named_modules()):
            for name, child in list(parent.named_children()):
                if isinstance(parent, PolyActivation):
                    continue
                if child not in done:
                    done[child] = self.module(f"{path}.{name}" if path else name, child)
                    if done[child] is not None:
                        done[child].train(child.training)
                if done[child] is not None:
                    setattr(parent, name, done[child])

    def calls_inside(self, model: nn.Module, data: Data | None) -> nn.Module:
        """Functional calls, in the graph; returns the graph if it was changed."""
        example = None if data is None else next(iter(inputs_of(data)))[:1].to(device_of(model))
        traced = trace.trace(model, example)
        if isinstance(traced, str):
            self.account.untraced = f"the model cannot be traced ({traced})"
            if example is not None:
                self._look_at_calls(model, example)
            return model
        n_before = len(self.account.replaced)
        for node in list(traced.graph.nodes):
            self._call(traced, node)
        # What a client computes from the scores is no obstacle at the end.
        end = trace.last(traced)
        self.account.left = [entry for entry in self.account.left if (entry.name, entry.remedy) != (end, left.SOFTMAX)]
        if len(self.account.replaced) == n_before:
            return model
        trace.restore_dropout(traced)
        traced.graph.lint()
        traced.recompile()
        return traced

    def _call(self, traced: GraphModule, node) -> None:
        if node.op not in ("call_function", "call_method"):
            return
        arguments, keywords = trace.parameters(node)
        function = torch_functions.of_call(node.target, arguments, keywords)
        pool = pools.of_call(node.target, arguments, keywords) if self.averages else None
        average = pools.average(pool) if pool is not None else None
        what = f"call of {_title(node.target)}"
        if function is not None or isinstance(average, nn.Module):
            module = self.activation(function) if function is not None else average
            name = trace.replace_by_module(traced, node, module)
            self.account.replaced.append(Replaced(name, what, type(module).__name__))
        else:
            remedy = f"it cannot become an average, {average}" if isinstance(average, str) else left.of_node(node)
            if remedy:
                self.account.left.append(Left(trace.place(node), what, remedy))

    def _look_at_calls(self, model: nn.Module, example: Tensor) -> None:
        """Without a graph: runs one batch, and tells which calls should have been replaced."""
        seen: dict[str, str] = {}
        for call in trace.recorded_calls(model, example):
            if torch_functions.of_call(call, (), {}) is not None:
                seen[_title(call)] = "it was not replaced, since the model cannot be traced: " + trace.ADVICE
            elif remedy := left.of_call(call):
                seen[_title(call)] = remedy
        self.account.untraced += "; one pass over the data shows the calls below" if seen else "; one pass over the data shows none"
        self.account.left += [Left("(somewhere in forward)", f"call of {name}", remedy) for name, remedy in seen.items()]


def _measure(model: nn.Module, data: Data, quantile: float, margin: float) -> None:
    if not 0 < quantile <= 1 or not margin > 0:
        raise ValueError(f"need 0 < quantile <= 1 and margin > 0, got quantile={quantile}, margin={margin}")
    reach = original_reach(model, data, quantile)
    for name, activation in activations(model).items():
        if name in reach:
            activation.refit(max(1, ceil(margin * reach[name] / _RANGE_STEP)) * _RANGE_STEP)


def _describe(model: nn.Module, account: Conversion) -> None:
    """Ranges and coefficients are known only now."""
    modules = dict(model.named_modules())
    for index, entry in enumerate(account.replaced):
        module = modules.get(entry.name, model if isinstance(model, PolyActivation) else None)
        if isinstance(module, PolyActivation):
            text = f"{module.function} as degree {len(module.coefficients) - 1} on [-{module.c:g}, {module.c:g}]"
            account.replaced[index] = Replaced(entry.name, entry.what, text)


def _nothing(account: Conversion) -> str:
    text = "the model has no nn.ReLU, no functional ReLU, and no other activation that has a polynomial fit"
    if account.untraced:
        text = f"the model has no activation module, and functional calls were not looked for: {account.untraced}; {trace.ADVICE}"
    return text + "".join(f"\n  left {entry}" for entry in account.left)


def _title(call: object) -> str:
    return call if isinstance(call, str) else getattr(call, "__name__", str(call))
