from nbkit.analysis.structure.repeats import number_repeats
from nbkit.analysis.structure.tree import PartTree


def tree_of(*locations, norms=()):
    tree = PartTree()
    for location in locations:
        tree.at("g", tuple(location.split("/")))
    for part in tree.parts:
        if "/".join(part.location) in norms:
            part.claim("norm", "said so")
    return tree


def numbers(tree, **forms):
    number_repeats(tree, [forms.get("/".join(part.location).replace("/", "_")) for part in tree.parts])
    return {"/".join(part.location): (part.number, part.repeat_of) for part in tree.parts if part.number is not None}


def test_layers_of_one_form_are_numbered_also_if_the_first_has_a_norm_more():
    tree = tree_of("h", "h/0/att", "h/0/ln0", "h/1/att", "h/10/att", "h/2/att", norms=("h/0/ln0",))
    assert numbers(tree) == {"h/0": (0, 1), "h/1": (1, 1), "h/2": (2, 1), "h/10": (3, 1)}


def test_another_form_between_ends_a_row():
    tree = tree_of("h", "h/0/att", "h/1/att", "h/2/scan", "h/3/att")
    assert numbers(tree) == {"h/0": (0, 1), "h/1": (1, 1)}


def test_equal_siblings_without_numbers_are_no_repeats():
    assert numbers(tree_of("a", "a/key", "a/value", "a/ln1", "a/ln2")) == {}


def test_what_they_hold_themselves_is_part_of_their_form():
    tree = tree_of("f", "f/0", "f/1", "f/2")
    assert numbers(tree, f_0="(3, 64)", f_1="(64, 64)", f_2="(64, 64)") == {"f/1": (0, 2), "f/2": (1, 2)}


def test_recognised_layers_are_numbered_by_what_stands_before_their_number():
    tree = tree_of("layer 0/attention", "layer 1/attention", "branch 2")
    assert numbers(tree) == {"layer 0": (0, 0), "layer 1": (1, 0)}
