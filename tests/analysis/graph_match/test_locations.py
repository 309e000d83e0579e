"""Where nodes are, in terms of the pairs of parts of two sides."""

import pytest

from nbkit.analysis.graph_match.locations import Locations
from nbkit.analysis.graph_match.pairs import Pairs
from nbkit.analysis.graph_match.side import Node, Part, Side


def side(*modules: tuple[int | None, str | None]) -> Side:
    """A side whose parts are these: the part that holds each, and its module."""
    parts = {
        at: Part(at, parent, module or "", module, None, None, None, None)
        for at, (parent, module) in enumerate(modules)
    }
    return Side({}, {}, {}, parts)


def node(part: int | None, name: str | None, module: str | None = "m") -> Node:
    return Node(0, "parameter", None, "parameter", name, module, part, None, None, None, None)


# Only the model's mlp has a partner: its linear layer is there, the norm beside it is nowhere.
LEFT = side((None, "model"), (0, "model.mlp"), (1, "model.mlp.up"), (0, "model.norm"))
RIGHT = side((None, "mlp"))


@pytest.mark.parametrize(
    ("state", "location", "name"),
    [
        (node(1, "model.mlp.bias"), 1, "bias"),
        (node(2, "model.mlp.up.weight"), 1, "up.weight"),
        (node(2, "elsewhere.weight"), 1, "elsewhere.weight"),
        (node(2, None), 1, None),
        (node(2, "weight", module=None), 1, None),
        (node(3, "model.norm.weight"), None, None),
        (node(None, "weight"), None, None),
    ],
)
def test_a_node_is_named_below_the_innermost_part_that_has_a_partner(state, location, name):
    pairs = Pairs()
    pairs.add(1, 0, "name")
    locations = Locations(LEFT, RIGHT, pairs)
    assert (locations.of(0, state), locations.inner_name(0, state)) == (location, name)


def test_the_right_side_is_named_by_the_part_of_the_left_one():
    pairs = Pairs()
    pairs.add(1, 0, "name")
    locations = Locations(LEFT, RIGHT, pairs)
    assert (locations.of(1, node(0, "mlp.bias")), locations.inner_name(1, node(0, "mlp.bias"))) == (1, "bias")


def test_names_below_the_root_and_below_what_is_no_module_are_whole_or_none():
    root, none = side((None, "")), side((None, None))
    pairs = Pairs()
    pairs.add(0, 0, "name")
    locations = Locations(root, none, pairs)
    assert locations.inner_name(0, node(0, "mlp.bias")) == "mlp.bias"
    assert locations.inner_name(1, node(0, "mlp.bias")) is None


def test_phases_of_one_module_are_at_the_first_of_them_that_has_a_partner():
    left, pairs = side((None, "m"), (None, "m"), (None, "m")), Pairs()
    pairs.add(1, 0, "name")
    pairs.add(2, 1, "name")
    locations = Locations(left, side((None, "m"), (None, "m")), pairs)
    assert [locations.of(0, node(part, "w")) for part in range(3)] == [1, 1, 2]
