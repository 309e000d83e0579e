"""Matches runs of graphs: which traced ops, listing and module tree belong together, and what the graph is called."""

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest

from nbkit.readers.oneflow.log.modules import ModuleTree, merged
from nbkit.readers.oneflow.log.store import Graphs, Listing, Traced


@dataclass(frozen=True)
class Run:
    """Holds one graph of the log: `label` is its name, numbered from the second one of that name on."""

    label: str
    name: str
    type: str | None
    rank: str | None
    traced: Traced | None
    listing: Listing | None
    tree: ModuleTree

    @property
    def unused_buffers(self) -> list[str]:
        """Returns the buffers of modules that neither a traced op nor a listed one is."""
        ops = {
            *(self.traced.ops if self.traced else ()),
            *(op.name for op in (self.listing.ops if self.listing else ())),
        }
        return [path for path in self.tree.buffers if path not in ops]


def runs(graphs: Graphs) -> list[Run]:
    """Returns the graphs of a log; the first listing of a name goes with its first traced ops, and so on."""
    result: list[Run] = []
    numbers: Counter[str] = Counter()
    for name, rank in _keys(graphs):
        traced = [part for part in graphs.traced if (part.name, part.rank) == (name, rank) and part.ops]
        listings = [part for part in graphs.listings if (part.name, part.rank) == (name, rank) and not part.is_empty]
        trees = [tree for known, of, tree in graphs.trees if (known, of) == (name, rank) and not tree.is_empty]
        for ops, listing, built in zip_longest(traced, listings, trees):
            numbers[name] += 1
            label = name if numbers[name] == 1 else f"{name} #{numbers[name]}"
            tree = merged(built, None if listing is None else listing.tree)
            result.append(Run(label, name, graphs.classes.get(name), rank, ops, listing, tree))
    return result


def _keys(graphs: Graphs) -> list[tuple[str, str | None]]:
    """Returns names and ranks in the order in which the log first has them."""
    of_traced = [(part.name, part.rank) for part in graphs.traced]
    of_trees = [(name, rank) for name, rank, _ in graphs.trees]
    return list(dict.fromkeys([*of_traced, *of_trees, *((part.name, part.rank) for part in graphs.listings)]))
