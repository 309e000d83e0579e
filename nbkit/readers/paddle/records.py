"""Holds what a Paddle program is made of, in whichever of its texts: variables, operations, blocks."""

from dataclasses import dataclass, field
from typing import Any

# Slot and the names in it, in the order of the text.
Slots = list[tuple[str | None, list[str]]]
# In the place of a tensor that is not there.
PLACEHOLDERS = frozenset({"@EMPTY@", "<<NULL VALUE>>"})


@dataclass
class Variable:
    """Holds one declared variable or value; `is_parameter` is None where the text does not tell it from other state."""

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    persistable: bool = False
    is_parameter: bool | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    line: int | None = None


@dataclass(frozen=True)
class BlockReference:
    """Refers to other blocks of the same program, as an attribute's value."""

    indices: tuple[int, ...]
    is_list: bool = False


@dataclass(frozen=True)
class VariableReference:
    """Refers to variables that the operation reads, as an attribute's value."""

    names: tuple[str, ...]
    is_list: bool = False


@dataclass
class Operation:
    """Holds one operation; `damage` says what of its record could not be read, `name` is its own where it has one."""

    type: str
    inputs: Slots = field(default_factory=list)
    outputs: Slots = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    kind: str = "op"
    name: str | None = None
    damage: str | None = None
    line: int | None = None

    @property
    def bare_type(self) -> str:
        """Returns the type without PIR's dialect and its mark of operations in place."""
        return self.type.rpartition(".")[2].removesuffix("_")


@dataclass
class Block:
    """Holds the variables by name and the operations of one block; -1 stands for no other block."""

    index: int
    parent: int = -1
    forward: int = -1
    backward: int = -1
    variables: dict[str, Variable] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    line: int | None = None

    def declare(self, variable: Variable) -> None:
        """Adds a variable; a second declaration of a name changes nothing."""
        self.variables.setdefault(variable.name, variable)


@dataclass
class Program:
    """Holds a program's blocks by index; `form` is the spelling of its text, `rank` the process that printed it."""

    form: str
    blocks: dict[int, Block] = field(default_factory=dict)
    closed: bool = False
    rank: int | None = None

    @property
    def is_whole(self) -> bool:
        """Returns whether its text came to an end, and every block is there that an attribute names."""
        operations = (operation for block in self.blocks.values() for operation in block.operations)
        values = (value for operation in operations for value in operation.attributes.values())
        named = {index for value in values if isinstance(value, BlockReference) for index in value.indices}
        return self.closed and named <= self.blocks.keys()
