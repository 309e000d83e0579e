"""Reads OPERATOR lines of the compiled graph: an op with its arguments and results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nbkit.readers.element_sizes import sizes_in
from nbkit.readers.oneflow.dtypes import dtype_name

START = "OPERATOR:"
ARROW = ") -> ("
SIZE, DTYPE = "), size=(", "), dtype=("
PLACEMENT, LOCATION = "placement=(", ", location=("


class Description(NamedTuple):
    """Holds what the listing says of a tensor where it is read or made."""

    sbp: tuple[str, ...]
    shape: tuple[int, ...] | None
    dtype: str | None


UNKNOWN = Description((), None, None)
Argument = tuple[str, Description]


def sbp_text(sbp: Sequence[str]) -> str | None:
    """Returns the column of a distribution; None if it is unknown."""
    return ", ".join(sbp) or None


@dataclass(slots=True)
class CompiledOp:
    """Holds an op of the compiled graph: its arguments and results in call order, lists flattened.

    `lists` are the [first, last] inputs of each argument that is a list.
    """

    name: str
    line: int
    module: str | None
    inputs: list[Argument]
    outputs: list[Argument]
    placement: str | None
    location: str | None
    lists: list[list[int]]
    is_damaged: bool = False


class OperatorLines:
    """Reads OPERATOR lines; equal descriptions and placements are held once."""

    def __init__(self) -> None:
        self._descriptions: dict[str, Description] = {}
        self._texts: dict[str, str] = {}

    def read(self, text: str, line: int, module: str | None) -> CompiledOp | None:
        """Returns the op of a line; None if the line does not hold all of it."""
        start = text.find(START) + len(START)
        name_end = text.find("(", start)
        arrow = text.find(ARROW, name_end)
        if not text.endswith(")") or name_end < 0 or arrow < 0:
            return None
        name = text[start:name_end].strip()
        placement = text.find(PLACEMENT, arrow)
        location = text.find(LOCATION, arrow)
        ends = [at for at in (placement, location) if at >= 0]
        results = text[arrow + len(ARROW) : min(ends, default=len(text))].rstrip(",: ")
        if not name or not _is_whole(results, bool(ends)):
            return None
        inputs = text[name_end + 1 : arrow]
        return CompiledOp(
            name,
            line,
            module,
            self._arguments(name, inputs),
            self._arguments(name, results.removesuffix(")") if ends else results[:-2]),
            self._placement(text, placement, location),
            text[location + len(LOCATION) : -2] if location >= 0 else None,
            lists_in(inputs) if "[" in inputs else [],
            is_damaged=any(
                not part.count("sbp=(") == part.count(SIZE) == part.count(DTYPE) for part in (inputs, results)
            ),
        )

    def _placement(self, text: str, placement: int, location: int) -> str | None:
        if placement < 0:
            return None
        end = location if location > placement else len(text) - 1
        placed = text[placement + len(PLACEMENT) : end].removesuffix(")")
        if placed not in self._texts:
            self._texts[placed] = device_of(placed)
        return self._texts[placed]

    def _arguments(self, op: str, text: str) -> list[Argument]:
        if "sbp=(" not in text:
            return self._bare(op, text)
        arguments, at = [], 0
        while (sbp := text.find("sbp=(", at)) >= 0:
            size = text.find(SIZE, sbp)
            dtype = text.find(DTYPE, size) if size >= 0 else -1
            end = text.find(")", dtype + len(DTYPE)) if dtype >= 0 else -1
            if end < 0:
                break
            name = text[at:sbp].lstrip("), []").rstrip("(").removesuffix(":")
            arguments.append((self._tensor(op, name), self._description(text[sbp:end])))
            at = end + 1
        return arguments

    def _bare(self, op: str, text: str) -> list[Argument]:
        """Returns names alone, as the first versions printed them; "..." stands for what was left out."""
        names = [name.strip("[] ") for name in text.split(",")]
        return [(self._tensor(op, name), UNKNOWN) for name in names if name and name != "..."]

    def _tensor(self, op: str, name: str) -> str:
        whole = name if "/" in name else f"{op}/{name}"
        return self._texts.setdefault(whole, whole)

    def _description(self, text: str) -> Description:
        if text not in self._descriptions:
            size, dtype = text.find(SIZE), text.find(DTYPE)
            sbp = tuple(part.strip() for part in text[len("sbp=(") : size].split(","))
            self._descriptions[text] = Description(
                sbp, sizes(text[size + len(SIZE) : dtype]), dtype_name(text[dtype + len(DTYPE) :])
            )
        return self._descriptions[text]


def lists_in(arguments: str) -> list[list[int]]:
    """Returns first and last position of the tensors of each list in brackets."""
    lists, before, at = [], 0, 0
    while (start := arguments.find("[", at)) >= 0 and (end := arguments.find("]", start)) >= 0:
        before += arguments.count("sbp=(", at, start)
        count = arguments.count("sbp=(", start, end)
        if count:
            lists.append([before, before + count - 1])
        before, at = before + count, end
    return lists


def sizes(text: str) -> tuple[int, ...] | None:
    """Returns the sizes in "8, 1024"; () of a scalar, which is ""; None if it is no list of numbers."""
    return sizes_in(part for part in text.split(",") if part.strip())


def device_of(placement: str) -> str:
    """Returns 'cuda [0, 1]' of oneflow.placement(type="cuda", ranks=[0, 1]), in the spellings of all versions."""
    inner = placement[placement.find("(") + 1 :].removesuffix(")")
    kind, _, rest = inner.partition(",")
    kind = kind.partition("=")[2].strip("\"' ") or kind.strip("\"' ")
    where = rest.partition("=")[2].strip()
    return f"{kind} {where.partition(', hierarchy=')[0]}".strip()


def _is_whole(results: str, has_placement: bool) -> bool:
    """Returns whether the results end where they should: a line may be cut, or hold something else in its middle."""
    return results.endswith(")") if has_placement else results.endswith("))")
