"""Notes the nodes of a model's forward pass while it runs: calls of torch's modules, and of functions outside them."""

import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dis import opname
from sys import _getframe
from types import FrameType, FunctionType
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn
from torch._C import DisableTorchFunction
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from nbkit.capture.cost.analyzer.bias import has_bias, split_call
from nbkit.capture.cost.storages import BEFORE, INPUT, Storages
from nbkit.capture.diff.modules.copies import tensors_of
from nbkit.capture.frames.tensor_rows import dtype_text, sizes_text
from nbkit.capture.step.called_modules import CalledModule
from nbkit.capture.step.module_calls import ModuleRunner

CALL_FUNCTION, CALL_METHOD = "call_function", "call_method"
METHOD = type(Tensor.add)
NUMBERED = re.compile(r"(.+)_([0-9]+)")
# Operators that torch's methods call otherwise than Python's module `operator` does.
OPERATORS = {"div": "truediv", "remainder": "mod", "__rdiv__": "truediv", "__get__": "getattr"}
REFLECTED = re.compile("__r(add|sub|mul|matmul|div|floordiv|mod|pow|and|or|xor|lshift|rshift)__")
Here = tuple[int, int]  # slot of the next op, tensors saved so far
PLACEHOLDER, ATTRIBUTE, CALL_MODULE, OUTPUT = "placeholder", "get_attr", "call_module", "output"


class Described(NamedTuple):
    """Holds shapes, dtypes and devices of the tensors that a node returns, as texts; null where there is none."""

    shape: str | None
    dtype: str | None
    device: str | None


@dataclass
class Node:
    """Describes one node: its place among the ops, how many tensors were saved by its end, and what it took and made.

    `outputs` has the number of the memory and the bytes of each tensor that it made, but for parameters.
    """

    kind: str
    name: str
    module: str | None
    begin: int
    end: int
    saved: int
    outputs: list[tuple[int, int]]
    described: Described
    param_bytes: int = 0
    input_bytes: int = 0


class Ledger(Protocol):
    """Knows what the running step has done so far."""

    storages: Storages

    def place(self) -> int:
        """Returns the slot of the next op."""

    def saved_count(self) -> int:
        """Returns how many tensors have been saved."""


class Nodes(ModuleRunner):
    """Collects the nodes of one model's forward pass, in their order.

    A module of torch.nn is one node with all that it does, and so is a function of tensors that other code calls.
    What they return as a tuple is taken apart by one `getitem` for each item. A buffer that a function takes is a
    `get_attr` before it, and so is a parameter the first time. With `splits_bias` a call that adds a bias to a product
    is two nodes, and a module that does so is entered.
    """

    def __init__(self, *, splits_bias: bool = False) -> None:
        self.splits_bias = splits_bias
        self.model: nn.Module | None = None
        self.nodes: list[Node] = []
        self.names = Names()
        self.ledger: Ledger | None = None
        self.is_inside = True  # a node, or anything but the forward pass
        self.attributes: dict[int, str] = {}  # paths by id: buffers, and parameters that are no rows yet

    @contextmanager
    def collecting(self, model: nn.Module) -> Iterator[None]:
        """Collects what runs inside: the forward pass of a model."""
        self.model, self.is_inside = model, False
        tensors = (*model.named_buffers(), *model.named_parameters())
        self.attributes = {id(tensor): path for path, tensor in tensors}
        try:
            with _Functions(self):
                yield
        finally:
            self.is_inside = True

    def call(self, called: CalledModule, module: nn.Module, args: Any, kwargs: Any, run: Callable[..., Any]) -> Any:
        is_entered = self.splits_bias and has_bias(module)
        if self.is_inside or module is self.model or is_entered or not _is_leaf(module):
            return run(module, *args, **kwargs)
        begin, path = self._here(), called.path
        result = self._run(run, (module, *args), kwargs)
        taken = (*args, *kwargs.values())
        self._add(CALL_MODULE, path, begin, result, taken=taken, module=path, parameters=module.parameters())
        self._unpack(result)
        return result

    def call_function(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Runs a function that the model calls, and notes it if it returns tensors or writes to one."""
        if self.is_inside:
            return func(*args, **kwargs)
        if self.splits_bias and (calls := split_call(func, args, kwargs)) is not None:
            with DisableTorchFunction():
                self._attributes([arg for arg in (*args, *kwargs.values()) if isinstance(arg, Parameter)], self._here())
            return calls(self.call_function)
        kind, name = function_name(func, _getframe(2))
        begin = self._here()
        result = self._run(func, args, kwargs)
        with DisableTorchFunction():
            if any(True for _ in tensors_of(result)) or name == "setitem":
                taken = (*args, *kwargs.values())
                self._attributes(taken, begin)
                parameters = {id(arg): arg for arg in taken if isinstance(arg, Parameter)}
                self._add(kind, name, begin, result, taken=taken, parameters=parameters.values())
                self._unpack(result)
        return result

    def placeholder(self, name: str, value: Any) -> None:
        """Notes an input of the model."""
        self._add(PLACEHOLDER, name, self._here(), value)

    def output(self, result: Any) -> None:
        """Notes what the model returned."""
        self._add(OUTPUT, OUTPUT, self._here(), result, taken=(result,))

    def _run(self, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self.is_inside = True
        try:
            return run(*args, **kwargs)
        finally:
            self.is_inside = False

    def _here(self) -> Here:
        assert self.ledger is not None
        return self.ledger.place(), self.ledger.saved_count()

    def _add(
        self,
        kind: str,
        name: str,
        begin: Here,
        result: Any,
        *,
        taken: Sequence[Any] = (),
        module: str | None = None,
        parameters: Iterable[Tensor] = (),
    ) -> None:
        end = begin if kind == ATTRIBUTE else self._here()
        with DisableTorchFunction():
            inputs = [arg for arg in taken if isinstance(arg, Tensor) and not isinstance(arg, Parameter)]
            sizes = sum(each.nbytes for each in parameters), sum(each.nbytes for each in inputs)
            outputs = [*self._memories(result)]
            name = self.names.name(name)
            self.nodes.append(Node(kind, name, module, begin[0], *end, outputs, _described(result), *sizes))

    def _memories(self, result: Any) -> Iterator[tuple[int, int]]:
        assert self.ledger is not None
        for tensor in tensors_of(result):
            if isinstance(tensor, Parameter):
                continue
            held = self.ledger.storages.made(tensor, INPUT, BEFORE)
            if held is not None:
                yield held.number, tensor.nbytes

    def _attributes(self, taken: Any, begin: Here) -> None:
        for tensor in tensors_of(taken):
            path = self.attributes.get(id(tensor))
            if path is not None:
                self._add(ATTRIBUTE, path, begin, tensor)
                if isinstance(tensor, Parameter):
                    del self.attributes[id(tensor)]

    def _unpack(self, result: Any) -> None:
        if isinstance(result, tuple | list):
            for item in result:
                self._add(CALL_FUNCTION, "getitem", self._here(), item)
                self._unpack(item)


def _described(result: Any) -> Described:
    tensors = [*tensors_of(result)]
    if not tensors:
        return Described(None, None, None)
    dtypes, devices = (dict.fromkeys(texts) for texts in zip(*_kinds(tensors), strict=True))
    return Described(", ".join(sizes_text(tensor.shape) for tensor in tensors), ", ".join(dtypes), ", ".join(devices))


def _kinds(tensors: Iterable[Tensor]) -> Iterator[tuple[str, str]]:
    return ((dtype_text(tensor.dtype), str(tensor.device)) for tensor in tensors)


class _Functions(TorchFunctionMode):
    """Hands each call of a torch function to the nodes."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__()
        self.nodes = nodes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.nodes.call_function(func, args, kwargs or {})


def _is_leaf(module: nn.Module) -> bool:
    home = type(module).__module__
    is_torch = home.startswith(("torch.nn.", "torch.ao.nn.")) and not home.startswith("torch.nn.parallel")
    return is_torch and not isinstance(module, nn.Sequential)


class Names:
    """Gives each node a name of its own, an identifier that is no keyword and no builtin: add, add_1, sum_1."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.last: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """Returns the name of a node that is called, such as `encoder.layers.0`, with a number if that is taken."""
        plain = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", re.sub(r"\W", "_", wanted)).lower() or "root"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        match = NUMBERED.fullmatch(plain)
        base, number = (match[1], int(match[2])) if match else (plain, self.last.get(plain, 0))
        while plain in self.taken or keyword.iskeyword(plain) or hasattr(builtins, plain):
            number += 1
            plain = f"{base}_{number}"
        self.taken.add(plain)
        self.last[base] = number
        return plain


def function_name(func: Any, caller: FrameType) -> tuple[str, str]:
    """Returns kind and name of a call that a function mode sees: x + y is the function add, x.add(y) a method.

    Both call the same method of torch; the instruction that `caller` is at tells them apart.
    """
    name = getattr(func, "__name__", type(func).__name__)
    if match := REFLECTED.fullmatch(name):
        return CALL_FUNCTION, OPERATORS.get(name, match[1])
    is_operator = name.startswith("__")
    if type(func) is METHOD:
        is_operator |= not opname[caller.f_code.co_code[caller.f_lasti]].startswith("CALL")
    elif isinstance(func, FunctionType) and not is_operator and func.__qualname__.startswith("Tensor."):
        return CALL_METHOD, name
    if is_operator:
        return CALL_FUNCTION, OPERATORS.get(name, name.strip("_") if name.startswith("__") else name)
    return CALL_METHOD if type(func) is METHOD else CALL_FUNCTION, name
