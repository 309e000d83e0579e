"""Stands for the numbers that a step without values reads of its tensors, to print or to add up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from nbkit.capture.raw.patching import Patch

TEXT = "unknown"


class UnknownNumber(float):
    """Stands for a number that no op has computed: it reads "unknown", arithmetic keeps it, comparing it asks for it.

    To functions that take any float it is 1, as what optimizers read is. `asked` computes it, or raises CostError.
    """

    __slots__ = ("asked",)
    asked: Callable[[], float]

    def __new__(cls, asked: Callable[[], float]) -> "UnknownNumber":
        number = super().__new__(cls, 1.0)
        number.asked = asked
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
        if getattr(float, name)(self, *others) is NotImplemented:
            return NotImplemented
        return UnknownNumber(lambda: getattr(float, name)(self.asked(), *map(_number, others)))

    return arithmetic


def _compared(name: str) -> Callable[..., Any]:
    def comparison(self: UnknownNumber, *others: Any) -> Any:
        return getattr(float, name)(self.asked(), *map(_number, others))

    return comparison


def _number(value: Any) -> Any:
    return value.asked() if isinstance(value, UnknownNumber) else value


for _operator in "add sub mul truediv floordiv mod pow".split():
    for _name in (f"__{_operator}__", f"__r{_operator}__"):
        setattr(UnknownNumber, _name, _kept(_name))
for _name in ("__neg__", "__pos__", "__abs__", "__round__"):
    setattr(UnknownNumber, _name, _kept(_name))
for _name in "lt le gt ge eq ne bool int trunc floor ceil".split():
    setattr(UnknownNumber, f"__{_name}__", _compared(f"__{_name}__"))


@contextmanager
def numbers_of_fakes(
    read: Callable[[Tensor, Callable[[], Any]], Any], whole: Callable[[Tensor, Callable[[Tensor], Any]], Any]
) -> Iterator[None]:
    """Lets tensor.item(), and the format of a tensor of one number, go through `read`, which gets what asks torch.

    `whole` gives what tolist() and numpy() read of a tensor, and gets what reads that of one with values.
    """
    items, formats = Patch(Tensor, "item"), Patch(Tensor, "__format__")
    lists, arrays = Patch(FakeTensor, "tolist"), Patch(FakeTensor, "numpy")

    def item(tensor: Tensor) -> Any:
        return read(tensor, lambda: items.before(tensor))

    def tolist(tensor: Tensor) -> Any:
        return whole(tensor, Tensor.tolist)

    def numpy(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        return whole(tensor, lambda values: values.numpy(*args, **kwargs))

    def formatted(tensor: Tensor, form: str) -> Any:
        if isinstance(tensor, FakeTensor) and not tensor.dim():
            return format(tensor.item(), form)
        return formats.before(tensor, form)

    patches = ((items, item), (formats, formatted), (lists, tolist), (arrays, numpy))
    for patch, function in patches:
        patch.install(function)
    try:
        yield
    finally:
        for patch, _ in reversed(patches):
            patch.remove()
