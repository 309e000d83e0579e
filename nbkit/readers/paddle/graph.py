"""Turns a block of a program into rows: a node per state variable, outside input and operation, an edge per reading."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.graphs.values import Value
from nbkit.readers.element_sizes import sizes
from nbkit.readers.paddle.communication import collective, is_communication, mesh_text
from nbkit.readers.paddle.phases import inserted, phase
from nbkit.readers.paddle.records import (
    PLACEHOLDERS,
    Block,
    BlockReference,
    Operation,
    Program,
    Variable,
    VariableReference,
)

# Operations that stand for an input or an output, or for state.
KINDS = {
    "feed": "input",
    "fetch": "output",
    "fetch_v2": "output",
    "shadow_output": "output",
    "constant": "constant",
}
BACKEND = re.compile(r"backend:(\w+)")
CODE_LINE = re.compile(r'\s{0,40}File "([^"]{1,1000})", line (\d{1,9})')
OWN_CODE = re.compile(r"[/\\]paddle[/\\]|[/\\]site-packages[/\\]")


class BlockGraph:
    """Adds the rows of one block; `prefix` stands before the names of all graphs of its program."""

    def __init__(self, rows: GraphRows, program: Program, block: Block, prefix: str) -> None:
        self.graph = f"{prefix}block {block.index}"
        self.nodes: dict[int, int] = {}  # by the operation's place in the block
        self._rows = rows
        self._program = program
        self._block = block
        self._prefix = prefix
        self._scope = _scope(program, block)
        self._values: dict[str, Value] = {}

    def add(self) -> None:
        """Adds nodes, edges and tensors."""
        outside = from_outside(self._block)
        operations = self._block.operations
        made = {name for operation in operations if operation.kind != "op" for _, name in writes(operation)}
        variables = self._block.variables.values()
        states = [variable.name for variable in variables if variable.persistable and variable.name not in made]
        for name in dict.fromkeys([*states, *outside]):
            self._outside_node(name)
        for index, operation in enumerate(operations):
            self.nodes[index] = self._operation(operation)
        for name in dict.fromkeys([*self._block.variables, *self._values]):
            self._tensor(name)

    def _value(self, name: str) -> Value:
        """Returns the tensor of that name, with the type that a block declares."""
        if name not in self._values:
            self._values[name] = Value(name, columns=_type(self._scope.get(name)))
        return self._values[name]

    def _outside_node(self, name: str) -> None:
        """Adds the node of a state variable, or of a tensor that the block reads and nothing in it has made."""
        variable = self._scope.get(name)
        own = name in self._block.variables
        kind = _state_kind(variable) if own and variable and variable.persistable else "input"
        facts: dict[str, Any] = {}
        if variable is None:
            facts["declared"] = False
            self._rows.unmade[name] = None
        elif not own:
            facts["variable_of"] = self._named(self._owner(name))
            facts["persistable"] = variable.persistable
        node = self._rows.node(
            self.graph,
            kind,
            name,
            attributes=facts,
            line=variable.line if variable and own else None,
            mesh=mesh_text(variable) if variable else None,
            **_type(variable),
        )
        self._value(name).given_by(node).kind = kind

    def _named(self, index: int) -> str:
        """Returns the graph of the block with this index."""
        return f"{self._prefix}block {index}"

    def _owner(self, name: str) -> int:
        """Returns the index of the nearest block around this one that declares the name."""
        return next(block.index for block in _around(self._program, self._block) if name in block.variables)

    def _operation(self, operation: Operation) -> int:
        kind = KINDS.get(operation.bare_type, operation.kind) if operation.kind == "op" else operation.kind
        made = [name for _, name in writes(operation)]
        when = phase(operation)
        facts = {} if kind == "op" else {"type": operation.type}
        node = self._rows.node(
            self.graph,
            kind,
            operation.name or _named_after(operation) or (made[0] if made else operation.type),
            op=operation.type if kind == "op" else None,
            phase=when,
            inserted=inserted(operation, when),
            device=_device(operation),
            **_ranks(operation),
            module=_module(operation.attributes.get("struct_name")),
            source=_source(operation.attributes.get("op_callstack")),
            line=operation.line,
            attributes={**facts, **self._attributes(operation)},
            **_type(self._scope.get(made[0]) if made else None),
        )
        self._read(operation, node, kind)
        self._wrote(operation, node, kind)
        return node

    def _read(self, operation: Operation, node: int, kind: str) -> None:
        for port, slot, name in reads(operation):
            value = self._value(name)
            value.read_by(self._rows, node, port, slot)
            if kind == "output" and value.kind == "temporary":
                value.kind = kind

    def _wrote(self, operation: Operation, node: int, kind: str) -> None:
        for port, name in writes(operation):
            value = self._value(name).written_by(node, port)
            if kind in ("input", "parameter", "buffer", "constant") and value.kind == "temporary":
                value.kind = kind

    def _attributes(self, operation: Operation) -> dict[str, Any]:
        """Returns the attributes, with slots and damage; one of their names is told apart by a bracket."""
        own = {
            "inputs": _by_slot(operation.inputs),
            "outputs": _by_slot(operation.outputs),
            **({"damaged": operation.damage} if operation.damage else {}),
        }
        read = {
            f"{name} (attribute)" if name in own else name: self._plain(value)
            for name, value in operation.attributes.items()
        }
        return {**read, **own}

    def _plain(self, value: Any) -> Any:
        """Returns an attribute's value as JSON data; blocks are named by their graphs."""
        if isinstance(value, BlockReference):
            graphs = [self._named(index) for index in value.indices]
            return graphs if value.is_list or len(graphs) != 1 else graphs[0]
        if isinstance(value, VariableReference):
            return {"variables": list(value.names)}
        return value

    def _tensor(self, name: str) -> None:
        """Adds the row of a tensor that this block declares, or that no block does."""
        variable = self._block.variables.get(name)
        if variable is None and name in self._scope:
            return
        value = self._value(name)
        value.attributes = _facts(variable)
        size = sizes(variable.dtype, variable.shape) if variable else {}
        value.write(self._rows, self.graph, **size)


def _named_after(operation: Operation) -> str | None:
    """Returns the parameter that an optimizer's operation updates: its first result may be any of its states."""
    return next((names[0] for slot, names in operation.outputs if slot == "ParamOut" and len(names) == 1), None)


def _ranks(operation: Operation) -> dict[str, Any]:
    """Returns the columns mesh, ring and peer."""
    known = collective(operation) if is_communication(operation.bare_type) else {}
    peer = known.get("root") if known.get("peer") is None else known["peer"]
    return {"mesh": mesh_text(operation), "ring": _rank(known.get("ring")), "peer": _rank(peer)}


def _rank(number: Any) -> int | None:
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31 else None


def _device(operation: Operation) -> str | None:
    """Returns where the operation runs, which an attribute or its kernel's key says."""
    backend = BACKEND.search(str(operation.attributes.get("kernel_key")))
    return operation.attributes.get("op_device") or (backend[1].lower() if backend else None)


def _module(path: Any) -> str | None:
    """Returns the path of the layer that an operation is of: `/net/linear/` as net.linear."""
    return path.strip("/").replace("/", ".") or None if isinstance(path, str) else None


def _around(program: Program, block: Block) -> list[Block]:
    """Returns the block itself and those that hold it, from the inside out."""
    blocks = {block.index: block}
    while (parent := program.blocks.get(block.parent)) and parent.index not in blocks:
        blocks[parent.index] = block = parent
    return list(blocks.values())


def _scope(program: Program, block: Block) -> Mapping[str, Variable]:
    """Returns every variable that the block can name."""
    scope: dict[str, Variable] = {}
    for holder in reversed(_around(program, block)):
        scope |= holder.variables
    return scope


def _state_kind(variable: Variable) -> str:
    return "parameter" if variable.is_parameter else "buffer"


def _sizes(shape: tuple[int, ...] | None) -> list[int | None] | None:
    return None if shape is None else [None if size < 0 else size for size in shape]


def _type(variable: Variable | None) -> dict[str, Any]:
    """Returns the columns dtype and shape."""
    return {"dtype": variable.dtype, "shape": _sizes(variable.shape)} if variable else {}


def _facts(variable: Variable | None) -> dict[str, Any]:
    """Returns the attributes of a tensor's row."""
    if variable is None:
        return {"declared": False}
    return {"type": variable.type, "persistable": variable.persistable, **variable.attributes}


def _by_slot(slots: list[tuple[str | None, list[str]]]) -> dict[str, list[str]] | list[str]:
    """Returns names by slot; a plain list where slots have no names."""
    if any(slot is None for slot, _ in slots):
        return [name for _, names in slots for name in names]
    result: dict[str, list[str]] = {}
    for slot, names in slots:
        result.setdefault(str(slot), []).extend(names)
    return result


def _source(callstack: Any) -> str | None:
    """Returns the innermost line of the user's own code in a call stack, else its innermost line."""
    lines = [CODE_LINE.match(line) for line in callstack] if isinstance(callstack, list) else []
    locations = [match for match in lines if match]
    own = [match for match in locations if not OWN_CODE.search(match[1])]
    return f"{(own or locations)[-1][1]}:{(own or locations)[-1][2]}" if locations else None


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
