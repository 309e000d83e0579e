"""What an op is run again on: a device and precision, or a function of the user."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.diff.copies import all_tensors, cloned, copier, mapped_call, tensors_in
from nbkit.capture.diff.plans import Plan
from nbkit.errors import OptionError

Function = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
PRECISE = {"float64": torch.float64, "float32": torch.float32}
CPU = torch.device("cpu")
# Of the signs that inputs are perturbed by: never the user's generator.
SEED = 20


class NoKernelError(Exception):
    """The reference cannot run an op in any precision it has."""


class Reference:
    """Where calls are repeated; `dtype` is None for a function, which is given the inputs as they are."""

    def __init__(self, given: str | Function) -> None:
        self.function = None if isinstance(given, str) else given
        self.device, self.dtype = _parsed(given) if isinstance(given, str) else (CPU, torch.float64)
        self.text = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
        if self.function is not None and not callable(given):
            raise OptionError(f"reference={given!r} is neither text such as 'cpu:float64' nor a function.")
        # Ops found to have no kernel in `dtype`.
        self.narrow: set[Any] = set()

    def copy(self, plan: Plan, args: Any, kwargs: Any) -> "Call":
        """The call, its inputs copied."""
        if self.function is not None:
            change: Callable[[Any], Any] = cloned
        else:
            change = copier(self.device, torch.float32 if plan.func in self.narrow else self.dtype)
        return Call(self, plan, *mapped_call(args, kwargs, change, {}))


def _parsed(text: str) -> tuple[torch.device, torch.dtype]:
    place, _, precision = text.rpartition(":")
    if precision not in PRECISE:
        place, precision = text, "float64"
    try:
        device = torch.device(place or "cpu")
        torch.zeros(1, device=device, dtype=PRECISE[precision]) + 1
    except Exception as error:
        raise OptionError(
            f"reference={text!r} cannot be used ({str(error).splitlines()[0]}); give a device that is here and a "
            f"precision, such as 'cpu:float64' or 'cpu:float32'."
        ) from error
    return device, PRECISE[precision]


class Call:
    """One call with copies of its inputs from before it ran; they stay as they are however often it is repeated."""

    def __init__(self, reference: Reference, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.reference, self.plan, self.args, self.kwargs = reference, plan, args, kwargs
        self.note: str | None = None
        self.spread: list[Tensor] | None = None

    def tensors(self) -> list[Tensor]:
        """Its inputs."""
        return all_tensors(self.args, self.kwargs)

    def results(self) -> "Results":
        """What the reference makes of the call. Raises NoKernelError, or what the reference raised."""
        if self.reference.function is not None:
            return self._once(self.args, self.kwargs, self.reference.function)
        if self.plan.func in self.reference.narrow:
            self.note = NARROW
        try:
            return self._once(self.args, self.kwargs)
        except NotImplementedError as error:
            raise NoKernelError(_first_line(error)) from error
        except RuntimeError as error:
            if self.reference.dtype is torch.float32 or self.note is not None:
                raise _without_kernel(error) from error
            return self._in_float32(error)

    def _in_float32(self, first: RuntimeError) -> "Results":
        args, kwargs = mapped_call(self.args, self.kwargs, copier(self.reference.device, torch.float32), {})
        try:
            found = self._once(args, kwargs)
        except (RuntimeError, NotImplementedError) as error:
            raise _without_kernel(first) from error
        self.reference.narrow.add(self.plan.func)
        self.args, self.kwargs, self.note = args, kwargs, NARROW
        return found

    def conditioning(self, expected: "Results", draws: int, eps: float) -> list[Tensor]:
        """For every tensor of `expected`: the largest change that changing the inputs by eps brings about."""
        if self.spread is None:
            args, kwargs, center = self.args, self.kwargs, expected.all
            if self.reference.function is not None:
                args, kwargs = mapped_call(args, kwargs, copier(CPU, torch.float64), {})
                center = self._once(args, kwargs).all
            generator = torch.Generator().manual_seed(SEED)
            self.spread = [torch.zeros(one.shape, dtype=torch.float64) for one in center]
            for _ in range(draws):
                changed = mapped_call(args, kwargs, _perturbing(generator, eps), {})
                for spread, found, middle in zip(self.spread, self._once(*changed).all, center, strict=True):
                    torch.maximum(spread, _distance(found, middle), out=spread)
        return self.spread

    def _once(self, args: Any, kwargs: Any, function: Function | None = None) -> "Results":
        plan = self.plan
        if plan.written or plan.written_names:
            memo: dict[int, Any] = {id(one): one.clone() for one in written_tensors(plan, args, kwargs)}
            args, kwargs = mapped_call(args, kwargs, lambda value: value, memo)
        out = plan.func._op(*args, **kwargs) if function is None else function(plan.func, args, kwargs)
        return Results(out, written_tensors(plan, args, kwargs))


class Results:
    """Tensors that a call returned, and those it wrote to without returning them."""

    def __init__(self, out: Any, written: list[Tensor]) -> None:
        self.outputs = list(tensors_in(out))
        self.written = [one for one in written if not any(one is other for other in self.outputs)]

    @property
    def all(self) -> list[Tensor]:
        return [*self.outputs, *self.written]


NARROW = "compared in float32: the reference has no float64 kernel"


def written_tensors(plan: Plan, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that a call writes to."""
    found: list[Tensor] = []
    for position in plan.written:
        if position < len(args):
            found.extend(tensors_in(args[position]))
    for name in plan.written_names:
        found.extend(tensors_in(kwargs.get(name)))
    return found


def _perturbing(generator: torch.Generator, eps: float) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        signs = torch.empty(value.shape, dtype=torch.float64).bernoulli_(0.5, generator=generator).mul_(2).sub_(1)
        return value * (1 + eps * signs.to(value.device)).to(value.dtype)

    return change


def _distance(found: Tensor, center: Tensor) -> Tensor:
    if not (center.is_floating_point() or center.is_complex()):
        return torch.zeros(center.shape, dtype=torch.float64)
    # A result that is no number leaves the others their scale.
    return (found - center).abs().to(CPU, torch.float64).nan_to_num_(nan=0.0, posinf=0.0)


def _without_kernel(error: Exception) -> Exception:
    text = _first_line(error)
    is_missing = isinstance(error, NotImplementedError) or "not implemented" in text or "not supported" in text
    return NoKernelError(text) if is_missing else error


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
