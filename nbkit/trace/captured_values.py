"""Holds captured calls: the values of single calls of ops, as plain bytes and numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbkit.numerics.precision import Array


@dataclass(frozen=True)
class CapturedTensor:
    """Holds an input of a call, from before it ran; `data` are its values in their own dtype, one after the other."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    data: bytes


@dataclass(frozen=True)
class CapturedResult:
    """Holds a tensor that a call returned or wrote to, and its reference: flat float64, complex128 or int64.

    `place` counts what the call returned and then what it wrote to without returning it; role and position are those
    of `diffs`. The shapes differ where the call gave a tensor of another shape than the reference.
    """

    place: int
    role: str
    position: int
    dtype: str
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    max_abs_error: float | None
    actual: Array
    expected: Array


@dataclass(frozen=True)
class CapturedCall:
    """Holds one call: the op's name, its arguments as JSON data, its tensors, and the results that were kept.

    In arguments {"tensor": 0} stands for a tensor by its place, and other objects of torch are named likewise.
    `setup` are lines of Python that make its device in a fresh process; `note` says what is not quite as it was.
    """

    op_id: int
    op: str
    device: str
    args: Any
    kwargs: Mapping[str, Any]
    tensors: tuple[CapturedTensor, ...]
    results: tuple[CapturedResult, ...]
    setup: tuple[str, ...] = ()
    note: str | None = None

    @property
    def size_bytes(self) -> int:
        """Returns the memory that it takes."""
        inputs = sum(len(tensor.data) for tensor in self.tensors)
        return inputs + sum(result.actual.nbytes + result.expected.nbytes for result in self.results)

    def result(self, role: str, position: int) -> CapturedResult | None:
        """Returns the result with this role and position in `diffs`; None if it was not kept."""
        return next((result for result in self.results if (result.role, result.position) == (role, position)), None)


def extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Returns how many elements there are in memory from the first one of a tensor to its last; 0 of an empty one."""
    return 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of a tensor that lies in memory row by row."""
    strides, step = list[int](), 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides[::-1])
