"""One call of a module as the judge takes it: frozen before it ran, run on the reference, forward or backward."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nbkit.capture.diff.modules.copies import Copies, held_tensors, tensors_of
from nbkit.capture.diff.modules.reference_mode import NotRunError, ReferenceMode
from nbkit.capture.diff.modules.reference_thread import ReferenceThread
from nbkit.capture.raw.tensor_registry import PLAIN
from nbkit.capture.replay.copies import WIDER
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.replay.reference import CPU, NOT_OF_DTYPE, Call, NoKernelError, Reference, Results
from nbkit.errors import first_line
from nbkit.numerics.precision import PRECISIONS, precision_of
from nbkit.ops.rounding import ROUNDED_ONCE

TF32_EPS = 2.0**-10
Key = tuple[str, int]  # ("input", 0): of the tensors given; ("parameter", 1): of the module's parameters()


@dataclass
class Frozen:
    """Holds copies of a module and of its arguments from before its call, in the precision of the reference."""

    module: nn.Module
    args: Any
    kwargs: Any
    has_gradients: bool  # whether autograd recorded the call
    dtypes: set[torch.dtype] = field(default_factory=set)  # of the step's own tensors
    devices: set[str] = field(default_factory=set)  # kinds of devices that these are on

    def tensors(self) -> list[Tensor]:
        """Returns all tensors it holds."""
        return [*tensors_of((self.args, self.kwargs)), *held_tensors(self.module)]

    def inputs(self) -> list[Tensor]:
        """Returns the tensors that the module is given, in order."""
        return [*tensors_of((self.args, self.kwargs))]


def frozen(module: nn.Module, args: Any, kwargs: Any, dtype: torch.dtype, has_gradients: bool) -> Frozen:
    """Returns copies of a module and its arguments, in one floating-point precision."""
    dtypes: set[torch.dtype] = set()
    devices: set[str] = set()

    def widened(tensor: Tensor) -> Tensor:
        dtypes.add(tensor.dtype)
        devices.add(tensor.device.type)
        copy = tensor.detach().to(CPU, WIDER[dtype].get(tensor.dtype, tensor.dtype), copy=True)
        if type(copy) not in PLAIN:
            raise NotRunError(f"modules with tensors of another class ({type(tensor).__name__})")
        return _as(tensor, copy, tensor.requires_grad and has_gradients)

    copies = Copies(widened)
    return Frozen(copies.of(module), copies.of(args), copies.of(kwargs), has_gradients, dtypes, devices)


def _as(tensor: Tensor, copy: Tensor, requires_grad: bool) -> Tensor:
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(copy, requires_grad)
    return copy.requires_grad_() if requires_grad else copy


class Ran:
    """Holds what one run of a frozen call made: results, and the leaves that gradients are taken for."""

    def __init__(self, call: Frozen, mode: ReferenceMode, *, with_graph: bool) -> None:
        self.leaves: dict[int, Tensor] = {}  # by id of the frozen tensor

        def fresh(tensor: Tensor) -> Tensor:
            leaf = _as(tensor, tensor.detach().clone(), tensor.requires_grad)
            self.leaves[id(tensor)] = leaf
            # A module may write to what it is given, not to a leaf.
            return leaf.clone() if with_graph and leaf.requires_grad and not isinstance(leaf, nn.Parameter) else leaf

        with torch.set_grad_enabled(call.has_gradients):
            copies = Copies(fresh)
            self.module, args, kwargs = copies.of(call.module), copies.of(call.args), copies.of(call.kwargs)
            self.inputs = [copies.of(tensor) for tensor in call.inputs()]
            mode.may_write([*self.inputs, *held_tensors(self.module)])
            with mode:
                self.outputs = [*tensors_of(self.module.forward(*args, **kwargs))]


class ModuleCall(Call):
    """Runs a module's call on the reference as often as the judge asks for it."""

    def __init__(self, reference: Reference, thread: ReferenceThread, name: str, call: Frozen) -> None:
        super().__init__(reference, _traits(name), (), {}, is_wide=True, in_pieces=False)
        self.thread, self.frozen, self.dtypes = thread, call, set(call.dtypes)
        self.precision = reference.dtype
        self.length = 1.0
        self.packets: set[str] = set()

    def tensors(self) -> list[Tensor]:
        return self.frozen.tensors()

    def widened(self) -> tuple[Any, Any]:
        return (), {}

    def _run(self, arguments: Any) -> Results:
        try:
            return self._in_thread()
        except (NotRunError, *NOT_OF_DTYPE):
            raise
        except Exception as error:
            first = error
        if self.precision is torch.float64:
            wide, self.precision = self.frozen, torch.float32
            narrow = frozen(wide.module, wide.args, wide.kwargs, torch.float32, wide.has_gradients)
            self.frozen = replace(narrow, dtypes=wide.dtypes, devices=wide.devices)
            try:
                results = self._in_thread()
            except NotRunError:
                raise
            except Exception:  # the first error tells most
                self.frozen, self.precision = wide, torch.float64
            else:
                self.note = f"compared in float32: it does not run in float64 ({first_line(first)})"
                return results
        raise NoKernelError(f"{type(first).__name__}: {first_line(first)}")

    def _in_thread(self) -> Results:
        results: Results = self.thread.run(lambda: self.once((), {}))
        return results

    def once(self, args: Any, kwargs: Any, function: Any = None) -> Results:
        mode = ReferenceMode(self.precision)
        results = self._made(mode)
        self.dtypes |= mode.named
        self.packets |= mode.packets
        self.length = max(self.length or 1.0, mode.length)
        return results

    def conditioning(self, draws: int, eps: float) -> list[Tensor]:
        """Returns what changing the inputs of each op inside by the eps of its dtypes brings about; see Call."""
        spreads: list[Tensor] = self.thread.run(partial(super().conditioning, draws, eps))
        return spreads

    def _changed(self, changed: tuple[Any, Any]) -> list[Tensor]:
        return self._made(ReferenceMode(self.precision, (self.generator, self._eps()))).all

    def _eps(self) -> float:
        """Returns the eps of the coarsest dtype that the module computes in."""
        known = [precision_of(str(dtype).removeprefix("torch.")) for dtype in self.dtypes]
        eps = max((one.eps for one in known if one is not None), default=PRECISIONS["float32"].eps)
        return max(eps, TF32_EPS) if "cuda" in self.frozen.devices and self._may_use_tf32() else eps

    def _may_use_tf32(self) -> bool:
        """Returns whether CUDA may compute products of the module with ten bits of each factor."""
        is_conv = any(packet.startswith("convolution") for packet in self.packets)
        is_product = not self.packets.isdisjoint(ROUNDED_ONCE)
        backends = torch.backends
        return (is_conv and backends.cudnn.allow_tf32) or (is_product and backends.cuda.matmul.allow_tf32)

    def _made(self, mode: ReferenceMode) -> Results:
        raise NotImplementedError


class ForwardCall(ModuleCall):
    """A call of a module's forward: outputs, the inputs that it writes to (their numbers in `changed`), its buffers."""

    def __init__(self, reference: Reference, thread: ReferenceThread, name: str, call: Frozen) -> None:
        super().__init__(reference, thread, name, call)
        self.changed: list[int] = []

    def _made(self, mode: ReferenceMode) -> Results:
        ran = Ran(self.frozen, mode, with_graph=self.frozen.has_gradients)
        return _detached(ran.outputs, [*(ran.inputs[number] for number in self.changed), *ran.module.buffers()])


class BackwardCall(ModuleCall):
    """The backward pass of a module's call: gradients of `keys` from those of its outputs, by their number."""

    def __init__(
        self,
        reference: Reference,
        thread: ReferenceThread,
        name: str,
        call: Frozen,
        given: dict[int, Tensor],
        keys: Sequence[Key],
    ) -> None:
        super().__init__(reference, thread, name, call)
        self.given, self.keys = given, keys

    def _made(self, mode: ReferenceMode) -> Results:
        ran = Ran(self.frozen, mode, with_graph=True)
        held: dict[str, list[Tensor]] = {"input": self.frozen.inputs(), "parameter": [*self.frozen.module.parameters()]}
        leaves = [ran.leaves[id(held[kind][number])] for kind, number in self.keys]
        numbers = [number for number in self.given if ran.outputs[number].requires_grad]
        outputs = [ran.outputs[number] for number in numbers]
        gradients = [self.given[number].to(outputs[at].dtype) for at, number in enumerate(numbers)]
        with torch.enable_grad(), mode:
            found = torch.autograd.grad(outputs, leaves, gradients, allow_unused=True)
        pairs = zip(found, leaves, strict=True)
        return _detached([torch.zeros_like(leaf) if one is None else one for one, leaf in pairs], [])


def _detached(outputs: list[Tensor], written: list[Tensor]) -> Results:
    results = Results([tensor.detach() for tensor in outputs], [])
    results.written = [tensor.detach() for tensor in written]
    return results


def _traits(name: str) -> OpTraits:
    """Returns the traits of a module, whose conditioning tells all that its rounding may do."""
    return OpTraits(None, name, "", None, False, (), (), is_pointwise=True, is_out=False, values=None)
