"""Cases of broken steps: each file is one, and its docstring says what an answer must name.

The first line of the docstring says what is wrong. `Fact:`, `Where:` (a module or parameter) and `Line:` (code of the
file) give strings that must all stand in one finding of the answer; `Steps:` how many steps to record, `Report:` where
the mistake was reported, `Missed:` why nbkit does not name it yet.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
SOUGHT = ("Fact", "Where", "Line")
FIELDS = (*SOUGHT, "Steps", "Report", "Missed")
STEPS = 3


@dataclass(frozen=True)
class Case:
    """Describes a script with a mistake, and the strings of which each must stand in the finding that names it."""

    path: Path
    mistake: str
    expected: tuple[str, ...]
    steps: int
    report: str | None
    missed: str | None

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"


def cases(names: Sequence[str] = ()) -> list[Case]:
    """Returns all cases, or those whose name or folder is among `names`, in the order of their paths."""
    found = [case_of(path) for path in sorted(FOLDER.glob("*/*.py"))]
    return [case for case in found if not names or {case.name, *case.name.split("/")} & {*names}]


def case_of(path: Path) -> Case:
    """Reads the docstring of a case; raises ValueError where it is not of the form above.

    A line that the file does not have as code is no answer, nor is a case that asks for nothing.
    """
    source = path.read_text()
    text = ast.get_docstring(ast.parse(source)) or ""
    mistake, _, rest = text.partition("\n")
    fields = list(_fields(path, rest))
    code = {line.strip() for line in source.partition('\n"""\n')[2].splitlines()}
    for field, value in fields:
        if field == "Line" and value not in code:
            raise ValueError(f"{path}: no line of it is {value!r}")
    expected = tuple(value for field, value in fields if field in SOUGHT)
    if not mistake or len(expected) < 2:
        raise ValueError(f"{path}: the docstring says too little of what an answer must name")
    others = dict(fields)
    return Case(path, mistake, expected, int(others.get("Steps", STEPS)), others.get("Report"), others.get("Missed"))


def _fields(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, map(str.strip, text.splitlines())):
        field, mark, value = line.partition(": ")
        if not mark or field not in FIELDS or not value.strip():
            raise ValueError(f"{path}: {line!r} is none of {', '.join(FIELDS)}")
        yield field, value.strip()
