"""Stands for the numbers that a step without values reads of its tensors, to print or to add up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from nbkit.capture.raw.patching import Patch
from nbkit.errors import CostError

TEXT = "unknown"


class UnknownNumber(float):
    """Stands for a number that no op has computed: it reads "unknown", arithmetic keeps it, and comparing it raises.

    To functions that take any float it is 1, as what optimizers read is. `refusal` says what was read where; it
    outlives the step.
    """

    __slots__ = ("refusal",)
    refusal: str

    def __new__(cls, refusal: str) -> "UnknownNumber":
        number = super().__new__(cls, 1.0)
        number.refusal = refusal
        return number

    def __repr__(self) -> str:
        return TEXT

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return TEXT

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (1.0,)

    __hash__ = float.__hash__


def _kept(name: str) -> Callable[..., Any]:
    def arithmetic(self: UnknownNumber, *others: Any) -> Any:
        result = getattr(float, name)(self, *others)
        return result if result is NotImplemented else UnknownNumber(self.refusal)

    return arithmetic


def _refused(self: UnknownNumber, *others: Any) -> Any:
    raise CostError(self.refusal)


for _operator in "add sub mul truediv floordiv mod pow".split():
    for _name in (f"__{_operator}__", f"__r{_operator}__"):
        setattr(UnknownNumber, _name, _kept(_name))
for _name in ("__neg__", "__pos__", "__abs__", "__round__"):
    setattr(UnknownNumber, _name, _kept(_name))
for _name in "lt le gt ge eq ne bool int trunc floor ceil".split():
    setattr(UnknownNumber, f"__{_name}__", _refused)


@contextmanager
def numbers_of_fakes(read: Callable[[Callable[[], Any]], Any]) -> Iterator[None]:
    """Lets tensor.item(), and the format of a tensor of one number, go through `read`, which gets what asks torch."""
    items, formats = Patch(Tensor, "item"), Patch(Tensor, "__format__")

    def item(tensor: Tensor) -> Any:
        return read(lambda: items.before(tensor))

    def formatted(tensor: Tensor, form: str) -> Any:
        if isinstance(tensor, FakeTensor) and not tensor.dim():
            return format(tensor.item(), form)
        return formats.before(tensor, form)

    items.install(item)
    formats.install(formatted)
    try:
        yield
    finally:
        formats.remove()
        items.remove()
