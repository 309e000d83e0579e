"""Finds which dimensions of a step's inputs are its batch and its sequence, and changes their sizes."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

from nbkit.errors import OptionError

Shape = tuple[int, ...]
# A new size, or new sizes by old ones.
Size = int | Mapping[int, int]


def resizing(
    batch_size: Size | None, sequence_length: Size | None, inputs: Sequence[Shape]
) -> Callable[[Shape], Shape]:
    """Returns what gives an input its new shape; `inputs` are the shapes of all, in the order in which the step takes
    them. Raises OptionError if it is not clear which of their sizes is meant, or none has it.
    """
    by_dim: dict[int, tuple[int, int]] = {}
    anywhere: dict[int, int] = {}
    for dim, name, size in ((0, "batch_size", batch_size), (1, "sequence_length", sequence_length)):
        if isinstance(size, Mapping):
            anywhere |= _checked(name, size, inputs)
        elif size is not None:
            of_batch = [shape for shape in inputs if not by_dim or len(shape) < 2 or shape[0] == by_dim[0][0]]
            size = _whole(name, size)
            by_dim[dim] = _old_size(name, dim, size, of_batch), size

    def resized(shape: Shape) -> Shape:
        new = [anywhere.get(size, size) for size in shape]
        for dim, (old, size) in by_dim.items():
            if len(shape) > dim and shape[dim] == old:
                new[dim] = size
        return tuple(new)

    return resized


def _old_size(name: str, dim: int, size: int, inputs: Sequence[Shape]) -> int:
    """Returns the size of one dimension of all inputs, else that of both the first and the largest one."""
    having = [shape for shape in inputs if len(shape) > dim]
    if not having:
        raise OptionError(
            f"{name}={size} changes nothing: the step takes no tensor from outside that has {dim + 1} dimensions; make "
            "its inputs before the step, not in it."
        )
    sizes = {shape[dim] for shape in having}
    if len(sizes) > 1:
        sizes = {having[0][dim], max(having, key=prod)[dim]}
    if len(sizes) > 1:
        raise OptionError(
            f"Which size is meant by {name}={size} is not clear, as the inputs of the step have the shapes "
            f"{_shapes(having)}; name the old one, as in {name}={{{having[0][dim]}: {size}}}."
        )
    return sizes.pop()


def _checked(name: str, sizes: Mapping[int, int], inputs: Sequence[Shape]) -> dict[int, int]:
    known = {size for shape in inputs for size in shape}
    for old, new in sizes.items():
        _whole(name, new)
        if old not in known:
            raise OptionError(
                f"{name}={dict(sizes)} changes nothing: no input of the step has a dimension of size {old!r}; their "
                f"shapes are {_shapes(inputs) or 'not known, as it takes none'}."
            )
    return dict(sizes)


def _whole(name: str, size: object) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise OptionError(
            f"{name} is {size!r}; give a whole number from 1 up, or one by its old size such as {{8: 32}}."
        )
    return size


def _shapes(shapes: Sequence[Shape]) -> str:
    return ", ".join(dict.fromkeys(str(list(shape)) for shape in shapes))
