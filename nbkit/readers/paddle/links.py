"""Finds which node made a tensor that an operation reads, where names are written several times."""

from collections.abc import Iterator

from nbkit.readers.paddle.records import PLACEHOLDERS, Block, Operation, VariableReference


def reads(operation: Operation) -> Iterator[tuple[int, str | None, str]]:
    """Yields port, slot and name of each tensor that is read, in the text's order; placeholders keep their port."""
    port = 0
    for slot, names in operation.inputs:
        for name in names:
            if name not in PLACEHOLDERS:
                yield port, slot, name
            port += 1
    for attribute, value in operation.attributes.items():
        for name in value.names if isinstance(value, VariableReference) else ():
            yield port, attribute, name
            port += 1


def writes(operation: Operation) -> Iterator[tuple[int, str]]:
    """Yields port and name of each tensor that is written."""
    names = (name for _, names in operation.outputs for name in names)
    return ((port, name) for port, name in enumerate(names) if name not in PLACEHOLDERS)


def from_outside(block: Block) -> list[str]:
    """Returns names that are read before the block writes them, in the order of their first reading."""
    written: set[str] = set()
    names: dict[str, None] = {}
    for operation in block.operations:
        names |= {name: None for _, _, name in reads(operation) if name not in written}
        written.update(name for _, name in writes(operation))
    return list(names)


class Writers:
    """Keeps the last writer of each name so far, as node and port."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}

    def wrote(self, name: str, node: int, port: int) -> None:
        self._last[name] = (node, port)

    def last(self, name: str) -> tuple[int | None, int | None]:
        """Returns node and port that wrote the name last; None for both if none did."""
        return self._last.get(name, (None, None))
