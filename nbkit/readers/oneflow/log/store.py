"""Holds the graphs of a log while it is read: traced ops, listings and module trees, each run on its own."""

from dataclasses import dataclass, field

from nbkit.readers.oneflow.log.modules import ModuleTree
from nbkit.readers.oneflow.names import split_name
from nbkit.readers.oneflow.text.operator_line import CompiledOp, Description
from nbkit.readers.oneflow.text.traced import TracedOp


@dataclass(slots=True)
class Traced:
    """Holds the ops that one thread added to one graph, in order; `tensors` are those that level 3 describes."""

    name: str
    rank: str | None
    thread: str | None
    ops: dict[str, TracedOp] = field(default_factory=dict)
    tensors: dict[str, Description] = field(default_factory=dict)
    last: TracedOp | None = None

    def put(self, op: TracedOp) -> None:
        """Adds an op; replaces one that was tried before and not taken."""
        self.ops[op.name] = op
        self.last = op


@dataclass(slots=True)
class Listing:
    """Holds one printed compiled graph; `hashes` of its lines tell a graph that is printed again.

    `runs` is how often the graph had been traced then: after another time it is another graph, though it be equal.
    `again` counts lines of ops that it had already.
    """

    name: str
    rank: str | None
    line: int
    ops: list[CompiledOp] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    tree: ModuleTree = field(default_factory=ModuleTree)
    runs: int = 0
    copies: int = 1
    again: int = 0
    names: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        return not self.ops and self.tree.is_empty

    def add(self, op: CompiledOp) -> None:
        """Adds an op; one of a name that the listing has is no other op."""
        if op.name in self.names:
            self.again += 1
        else:
            self.names.add(op.name)
            self.ops.append(op)


class Graphs:
    """Holds all runs of all graphs of a log."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self.traced: list[Traced] = []
        self.trees: list[tuple[str, str | None, ModuleTree]] = []
        self.listings: list[Listing] = []
        self._runs: dict[tuple[str | None, str | None, str], Traced] = {}

    def clear(self) -> None:
        """Forgets all graphs: whoever asked for them holds them."""
        for held in (self.traced, self.trees, self.listings, self._runs):
            held.clear()

    def tree(self, name: str, rank: str | None) -> ModuleTree:
        """Returns the module tree that is being printed for a graph: a new one where the last one was finished."""
        for known, of, tree in reversed(self.trees):
            if (known, of) == (name, rank):
                if not tree.is_done:
                    return tree
                break
        self.trees.append((name, rank, ModuleTree()))
        return self.trees[-1][2]

    def built(self, name: str, rank: str | None) -> None:
        """Notes that the module tree that was being printed is whole."""
        for known, of, tree in self.trees:
            tree.is_done = tree.is_done or (known, of) == (name, rank)

    def tried(self, name: str, rank: str | None, thread: str | None, op: TracedOp) -> None:
        """Notes that a thread tries to add an op; a name that the graph has taken already begins another run."""
        run = self._run(name, rank, thread)
        if op.name in run.ops and run.ops[op.name].is_added:
            run = self._start(name, rank, thread)
        run.put(op)

    def added(self, name: str, rank: str | None, thread: str | None, op: str, line: int) -> TracedOp:
        """Takes a line that says that an op was taken; one not mentioned before is known by its name alone."""
        run = self._run(name, rank, thread)
        if op in run.ops and run.ops[op].is_added:
            run = self._start(name, rank, thread)
        if op not in run.ops:
            run.put(_by_name(op, name, line))
        run.ops[op].is_added = True
        return run.ops[op]

    def printed(self, name: str, rank: str | None, thread: str | None, op: TracedOp) -> None:
        """Takes a line that says that an op was taken and holds all of it; it may be printed for the second time."""
        known = self._run(name, rank, thread).ops.get(op.name)
        if known is None or known.is_added or known.is_damaged:
            self.tried(name, rank, thread, op)
        self.added(name, rank, thread, op.name, op.line)

    def last_tried(self, name: str, rank: str | None, thread: str | None) -> TracedOp | None:
        """Returns the op that the thread tried last, if it is not known to be taken."""
        last = self._run(name, rank, thread).last
        return None if last is None or last.is_added else last

    def tensors(self, name: str, rank: str | None, thread: str | None) -> dict[str, Description]:
        """Returns where level 3's descriptions of a graph's tensors go."""
        return self._run(name, rank, thread).tensors

    def close(self, listing: Listing) -> None:
        """Ends a listing: if the graph was printed before, it is the same one."""
        listing.runs = sum((run.name, run.rank) == (listing.name, listing.rank) for run in self.traced)
        for earlier in self.listings:
            same = (earlier.name, earlier.rank, earlier.runs) == (listing.name, listing.rank, listing.runs)
            if same and earlier.hashes[: len(listing.hashes)] == listing.hashes and listing.hashes:
                earlier.copies += 1
                return
        self.listings.append(listing)

    def _run(self, name: str, rank: str | None, thread: str | None) -> Traced:
        return self._runs.get((rank, thread, name)) or self._start(name, rank, thread)

    def _start(self, name: str, rank: str | None, thread: str | None) -> Traced:
        made = self._runs[rank, thread, name] = Traced(name, rank, thread)
        self.traced.append(made)
        return made


def _by_name(op: str, graph: str, line: int) -> TracedOp:
    """Returns an op of which only the name is known."""
    parts = split_name(op)
    made = TracedOp(op, line, outputs=[f"{op}/out"], has_text=False)
    if op.startswith((f"_{graph}_input", f"_{graph}-input")):
        made.kind = "input"
    elif op.startswith((f"_{graph}_output", f"_{graph}-output")):
        made.kind = "output"
    elif parts is None or parts[1] == "FreeEagerTensor":
        made.kind = "parameter" if parts is None else "constant"
    else:
        made.op, made.outputs = parts[1], []
    return made
