"""Reads lines of the module tree and of the listing: GRAPH, MODULE, INPUT, OUTPUT, PARAMETER, BUFFER, OPERATOR."""

from nbkit.readers.oneflow.log.modules import ModuleTree
from nbkit.readers.oneflow.log.store import Graphs, Listing
from nbkit.readers.oneflow.text.multiline_records import TensorBody
from nbkit.readers.oneflow.text.operator_line import ARROW, START, OperatorLines
from nbkit.readers.oneflow.text.tensor_text import tensor_text
from nbkit.readers.skipped_lines import SkippedLines

WORDS = ("GRAPH:", "MODULE:", "INPUT:", "OUTPUT:", "PARAMETER:", "BUFFER:", "CONFIG:", "OPERATOR:", "GraphModule:")
OPENS, IS_EMPTY = "): (", "): ()"


def tree_word(line: str) -> str | None:
    """Returns which line of the tree it is, told from its first word; the bracket before it may be lost."""
    text = line[1:] if line[:1] == "(" else line
    return next((word for word in WORDS if text.startswith(word)), None)


def is_of_tree(line: str) -> bool:
    """Returns whether it is a line of the tree by its form, whatever its first word."""
    return (line[:1] == "(" and line.endswith((OPENS, IS_EMPTY))) or ("sbp=(" in line and ARROW in line)


class TreeLines:
    """Reads the tree of one rank's lines into the graphs."""

    def __init__(self, graphs: Graphs, rank: str | None, operators: OperatorLines, skipped: SkippedLines) -> None:
        self.listing: Listing | None = None
        self.graph = "graph"
        self._graphs, self._rank, self._operators, self._skipped = graphs, rank, operators, skipped
        self._path: list[str] = []

    @property
    def tree(self) -> ModuleTree:
        """Returns the tree that the next line belongs to."""
        return self.listing.tree if self.listing is not None else self._graphs.tree(self.graph, self._rank)

    @property
    def is_open(self) -> bool:
        """Returns whether the listing has modules that were not closed."""
        return bool(self._path)

    def begin(self, line: int, name: str, type_: str) -> None:
        """Takes the head of a listing."""
        self.end()
        self.graph = name
        self._graphs.classes.setdefault(name, type_)
        self.listing = Listing(name, self._rank, line)
        self._path = [""]

    def end(self) -> None:
        """Ends the listing."""
        if self.listing is not None:
            self._graphs.close(self.listing)
        self.listing, self._path = None, []

    def bracket(self) -> None:
        """Takes a line of a closing bracket alone."""
        if self._path:
            self._path.pop()
        if not self._path:
            self.end()

    def module(self, text: str) -> None:
        """Takes a MODULE line: "path:Class(arguments)" and what follows."""
        path, _, rest = text.partition(":")
        type_, _, arguments = rest.partition("(")
        tree = self.tree
        if self.listing is None:
            tree.calls[path] = tree.calls.get(path, 0) + 1
        is_empty, opens = rest.endswith(IS_EMPTY), rest.endswith(OPENS)
        arguments = arguments.removesuffix(IS_EMPTY if is_empty else OPENS if opens else ")").removesuffix(")")
        tree.module(path, type_, arguments)
        if opens and self.listing is not None:
            self._path.append(path)

    def block(self, text: str) -> None:
        """Takes a GraphModule line: the settings of a module, and its operators below."""
        if text.endswith(OPENS) and self.listing is not None:
            path = text.partition("(")[0]
            self._path.append(path if path in self.listing.tree.types else (self._path or [""])[-1])

    def tensor(self, word: str) -> TensorBody:
        """Reads an INPUT, OUTPUT, PARAMETER or BUFFER line, which wraps."""

        def done(text: str) -> None:
            path, _, tensor = text.partition(":")[2].partition(":")
            if word == "PARAMETER:":
                self.tree.parameters[path] = tensor_text(tensor)
            elif word == "BUFFER:":
                self.tree.buffers[path] = tensor_text(tensor)
            elif path:
                self.tree.passed[word[:-1].lower(), path] = tensor_text(tensor)

        return TensorBody(done)

    def operator(self, number: int, line: str) -> None:
        """Takes an OPERATOR line; without a listing around it, it begins one."""
        if self.listing is None:
            self.listing = Listing(self.graph, self._rank, number)
        read = self._operators.read(line, number, self._path[-1] if self._path else None)
        if read is None:
            self._skipped.add(number, line, "an operator that is cut or damaged")
            return
        if read.is_damaged:
            self._skipped.add(number, line, "arguments or results of an operator are damaged")
        self.listing.add(read)
        self.listing.hashes.append(hash(line[line.find(START) :]))
