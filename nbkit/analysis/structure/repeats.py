"""Numbers repeats: parts of the same form in a row below one parent, as the layers of a model are."""

from collections.abc import Hashable
from itertools import groupby

from nbkit.analysis.structure.tree import PartTree


def number_repeats(tree: PartTree, forms: list[Hashable]) -> None:
    """Fills number and repeat_of of numbered siblings that have the same form one after the other.

    `forms` says of each part what it holds itself. The form of a part is that, its class and role, and the forms of
    the parts in it except norms: a first layer with a norm more is still a layer.
    """
    whole = _whole_forms(tree, forms)
    rows = [*tree.children(), [index for index, part in enumerate(tree.parts) if part.parent is None]]
    for siblings in rows:
        numbered = [(number, index) for index in siblings if (number := _number(tree.parts[index].name)) is not None]
        by_graph = sorted(
            numbered, key=lambda pair: (tree.parts[pair[1]].graph, _stem(tree.parts[pair[1]].name), pair[0])
        )
        for _, run in groupby(by_graph, key=lambda pair: (tree.parts[pair[1]].graph, whole[pair[1]])):
            members = [index for _, index in run]
            for number, index in enumerate(members if len(members) > 1 else []):
                tree.parts[index].number, tree.parts[index].repeat_of = number, members[0]


def _whole_forms(tree: PartTree, forms: list[Hashable]) -> list[int]:
    """Returns number of the form of each part with what is below it; equal forms have equal numbers."""
    known: dict[Hashable, int] = {}
    whole = [0] * len(tree.parts)
    children = tree.children()
    # Children come after their parent, so from the end theirs are known.
    for index in reversed(range(len(tree.parts))):
        part = tree.parts[index]
        below = sorted(
            (_stem(tree.parts[at].name), whole[at]) for at in children[index] if tree.parts[at].role != "norm"
        )
        form = (part.type, part.role, part.phase, forms[index], tuple(below))
        whole[index] = known.setdefault(form, len(known))
    return whole


def _number(name: str) -> int | None:
    """Returns the number that a name is or ends in after a blank ('3', 'layer 3'); None without one."""
    last = name.rpartition(" ")[2]
    return int(last) if last.isdecimal() else None


def _stem(name: str) -> str:
    return name.rpartition(" ")[0] if _number(name) is not None else name
