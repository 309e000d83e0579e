"""What an op is run again on: a device and precision, or a function of the user."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.raw.tensor_registry import PLAIN
from nbkit.capture.replay.chunked import Pieces, is_done_in_pieces
from nbkit.capture.replay.copies import (
    WIDER,
    all_tensors,
    cloned,
    copier,
    mapped_call,
    narrowed_call,
    tensors_in,
    with_copies,
)
from nbkit.capture.replay.devices import read_place
from nbkit.capture.replay.op_traits import OpTraits, bound, written_tensors
from nbkit.capture.replay.phases import turned
from nbkit.capture.replay.substitutes import SUBSTITUTES
from nbkit.capture.replay.undefined import settled
from nbkit.errors import OptionError, first_line
from nbkit.ops import undeclared

Function = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
DOUBLES = (torch.float64, torch.complex128)
PRECISE = {"float64": torch.float64, "float32": torch.float32}
CPU = torch.device("cpu")
# What an op raises because of the values or the memory, not because it has no kernel for their dtype.
NOT_OF_DTYPE = (
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]  # public, but torch does not export it by name
    torch.OutOfMemoryError,
    MemoryError,
    IndexError,
)
# Of the signs that inputs are perturbed by: never the user's generator.
SEED = 20


class NoKernelError(Exception):
    """The reference cannot run an op in any precision it has."""


class Reference:
    """Where calls are repeated; `dtype` is None for a function, which is given the inputs as they are."""

    def __init__(self, reference: str | Function) -> None:
        self.function = None if isinstance(reference, str) else reference
        self.device, self.dtype = _parsed(reference) if isinstance(reference, str) else (CPU, torch.float64)
        self.text = reference if isinstance(reference, str) else getattr(reference, "__name__", repr(reference))
        if self.function is not None and not callable(reference):
            raise OptionError(f"reference={reference!r} is neither text such as 'cpu:float64' nor a function.")
        # Ops found to have no kernel in `dtype`, with what their rows say.
        self.narrow: dict[Any, str] = {}

    def copy(self, traits: OpTraits, args: Any, kwargs: Any) -> "Call":
        """The call, its inputs copied: as they are for a function and for ops done piece by piece, else widened."""
        if self.function is not None:
            return Call(self, traits, *mapped_call(args, kwargs, cloned, {}), is_wide=False, in_pieces=False)
        if self.device == CPU and is_done_in_pieces(traits, args, kwargs):
            # One transfer for each tensor of a device: its pieces are widened on the CPU.
            memo: dict[int, Any] = {}
            copies = mapped_call(args, kwargs, _on_cpu, memo)
            if all(type(copy) in PLAIN for copy in memo.values()):
                return Call(self, traits, *copies, is_wide=False, in_pieces=True)
        return Call(self, traits, *mapped_call(args, kwargs, self.widen(traits), {}), is_wide=True, in_pieces=False)

    def size_of(self, tensors: list[Tensor]) -> int:
        """Bytes that tensors take here."""
        wider = WIDER[self.dtype] if self.function is None else {}
        return sum(tensor.numel() * wider.get(tensor.dtype, tensor.dtype).itemsize for tensor in tensors)

    def widen(self, traits: OpTraits) -> Callable[[Any], Any]:
        """What brings a tensor, dtype or device of a call to this reference."""
        return copier(self.device, torch.float32 if traits.func in self.narrow else self.dtype)


def _on_cpu(value: Any) -> Any:
    return value.to(CPU, copy=True) if isinstance(value, Tensor) else value


def _parsed(text: str) -> tuple[torch.device, torch.dtype]:
    try:
        return read_place(text, PRECISE)
    except Exception as error:
        raise OptionError(
            f"reference={text!r} cannot be used ({first_line(error)}); give a device that is here and a "
            f"precision, such as 'cpu:float64' or 'cpu:float32'."
        ) from error


class Call:
    """One call with copies of its inputs from before it ran; they stay as they are however often it is repeated."""

    def __init__(
        self,
        reference: Reference,
        traits: OpTraits,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        is_wide: bool,
        in_pieces: bool,
    ) -> None:
        self.reference, self.traits, self.args, self.kwargs = reference, traits, args, kwargs
        self.is_wide, self.in_pieces = is_wide, in_pieces
        self.note: str | None = None
        self.dtype: torch.dtype | None = None  # of the first result of the call itself
        self.dtypes: set[torch.dtype] = set()  # of all tensors of the call itself
        self.result_dtypes: tuple[torch.dtype, ...] | None = None  # that its results must have, where that is known
        self.length: float | None = None  # of how many numbers an element of a result is made, where its op tells not
        self.rounds_once = True  # its kernel rounds a product in half precision once, at its end
        self.generator_state: bytes | None = None  # before the call, of one that draws random numbers
        self.origin: Any = None  # what is needed to keep it, if it may be kept
        self.known: Results | None = None  # what the reference has made of it, where it has run already
        self.spreads: dict[int, list[Tensor]] = {}  # what conditioning() has found, by the number of draws

    def tensors(self) -> list[Tensor]:
        """Its inputs."""
        return all_tensors(self.args, self.kwargs)

    def results(self, arguments: Arguments | None = None) -> "Results":
        """Runs the call on the reference; the dtypes of `arguments`, those of the call itself, are the last resort.

        Raises NoKernelError, or what the reference raised.
        """
        if self.known is None:
            self.known = self._run(arguments)
        return self.known

    def _run(self, arguments: Arguments | None) -> "Results":
        if self.reference.function is not None:
            return self.once(self.args, self.kwargs, self.reference.function)
        if self.traits.packet in undeclared.PRIVATE and not self.has_substitute:
            raise NoKernelError("it reads a workspace that belongs to the kernel which filled it")
        try:
            if self.in_pieces:
                return Results(self.pieces().whole(), [])
            self.note = self.reference.narrow.get(self.traits.func)
            return self.once(*self.widened())
        except NOT_OF_DTYPE:
            raise
        except Exception as error:
            return self._narrower(error, arguments)

    @property
    def has_substitute(self) -> bool:
        """Whether formulas stand in for the op."""
        return self.traits.packet in SUBSTITUTES and self.reference.device == CPU

    def pieces(self) -> Pieces:
        """The results of a call that is done in pieces, one by one."""
        return Pieces(self.traits, self.args, self.kwargs, self.reference.widen(self.traits))

    def widened(self) -> tuple[Any, Any]:
        """Arguments and keyword arguments on the reference, in its precision."""
        if not self.is_wide:
            self.args, self.kwargs = mapped_call(self.args, self.kwargs, self.reference.widen(self.traits), {})
            self.is_wide = True
        return self.args, self.kwargs

    def _narrower(self, first: Exception, arguments: Arguments | None) -> "Results":
        """The call in float32, else in the dtypes it was given. What runs there shows that a kernel was missing.

        The text of an error does not tell: torch has dozens of ways to say that a dtype is not supported.
        """
        reference = self.reference
        has_doubles = arguments is not None and any(tensor.dtype in DOUBLES for tensor in all_tensors(*arguments))
        if reference.dtype is torch.float64 and self.note is None and not has_doubles:
            note = f"compared in float32: the reference has no float64 kernel ({first_line(first)})"
            copy = copier(reference.device, torch.float32)
            results = self._tried(mapped_call(self.args, self.kwargs, copy, {}), note)
            if results is not None:
                reference.narrow[self.traits.func] = note
                return results
        if arguments is not None:
            note = f"compared in its own dtypes: the reference has no wider kernel ({first_line(first)})"
            results = self._tried(narrowed_call((self.args, self.kwargs), arguments), note)
            if results is not None:
                return results
        raise NoKernelError(first_line(first)) if isinstance(first, NotImplementedError) else first

    def _tried(self, call: Arguments, note: str) -> "Results | None":
        """The results of the call with these arguments, which are its own from now on; None if that raises, too."""
        try:
            results = self.once(*call)
        except Exception:
            return None
        (self.args, self.kwargs), self.note = call, note
        self.is_wide, self.in_pieces = True, False
        return results

    def conditioning(self, draws: int, eps: float) -> list[Tensor]:
        """For every result: the largest change that changing the inputs by eps brings about, in so many draws.

        What was found is kept, so that each result of a call is judged by the same draws; asked for fewer, these are
        the first of them. With 0 they are all that there have been.
        """
        args, kwargs = self.widened()
        if not self.spreads:
            self.generator = np.random.default_rng(SEED)
            # Results made in pieces may differ from others in the last bit.
            is_at_hand = self.known is not None and not self.in_pieces and self.reference.function is None
            self.center = self.results().all if is_at_hand else self.once(args, kwargs).all
            self.spreads[0] = [torch.zeros(result.shape, dtype=torch.float64) for result in self.center]
        made = max(self.spreads)
        spreads = self.spreads.get(draws or made, self.spreads[made])
        for _ in range(made, draws):
            changed = self._changed(mapped_call(args, kwargs, perturbing(self.generator, eps), {}))
            distances = [_distance(result, middle) for result, middle in zip(changed, self.center, strict=True)]
            spreads = [torch.maximum(spread, distance) for spread, distance in zip(spreads, distances, strict=True)]
        if draws > made:
            if len(spreads) == 1:
                self.spreads.clear()  # no other result will ask for fewer draws
            self.spreads[draws] = spreads
        return spreads

    def _changed(self, changed: tuple[Any, Any]) -> list[Tensor]:
        """Results of the call with changed inputs, vectors without direction turned to those of the call itself."""
        return turned(self.traits.packet, self.once(*changed).all, self.center)

    def once(self, args: Any, kwargs: Any, function: Function | None = None) -> "Results":
        """Results of the op with these arguments, which stay as they are."""
        traits = self.traits
        if function is not None:  # it may write to anything
            args, kwargs = mapped_call(args, kwargs, cloned, {})
        elif traits.is_writing:
            args, kwargs = with_copies(written_tensors(traits, args, kwargs), args, kwargs, Tensor.clone)
        if function is not None:
            out = function(traits.func, args, kwargs)
        elif self.has_substitute:
            out = SUBSTITUTES[traits.packet](bound(traits.func, args, kwargs))
        else:
            out = as_bare(traits.func._op, args, kwargs)
        return Results.of(traits, out, args, kwargs)


class Results:
    """Tensors that a call returned, and those it wrote to without returning them."""

    def __init__(self, out: Any, written: list[Tensor], values: int | None = None) -> None:
        self.outputs = [out] if isinstance(out, Tensor) else list(tensors_in(out))[:values]
        self.written = written and [
            tensor for tensor in written if not any(tensor is output for output in self.outputs)
        ]

    @classmethod
    def of(cls, traits: OpTraits, out: Any, args: Any, kwargs: Any) -> "Results":
        """Those of a call that has returned `out`."""
        return cls(out, written_tensors(traits, args, kwargs), traits.values)

    def turn(self, packet: str, like: "Results") -> None:
        """Give vectors without direction, and what says nothing beside NaN, those of others they are compared with."""
        self.outputs = settled(packet, turned(packet, self.outputs, like.outputs), like.outputs)

    @property
    def all(self) -> list[Tensor]:
        return [*self.outputs, *self.written]


def perturbing(generator: np.random.Generator, eps: float) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(-(-value.numel() // 8)), dtype=np.uint8), count=value.numel()
        )
        signs = torch.from_numpy(bits).to(value.device, value.dtype).mul_(2).sub_(1).reshape(value.shape)
        # Inf less Inf is NaN, which a mask of -Inf would spread over all results.
        return torch.where(value.isinf(), value, value.addcmul(value, signs, value=eps))

    return change


def _distance(result: Tensor, center: Tensor) -> Tensor:
    if not (center.is_floating_point() or center.is_complex()):
        return torch.zeros(center.shape, dtype=torch.float64)
    # A result that is no number leaves the others their scale.
    return (result - center).abs().to(CPU, torch.float64).nan_to_num_(nan=0.0, posinf=0.0)
