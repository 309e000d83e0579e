"""Where both sides ran the same code, the place of a result says what it corresponds to."""

from nbkit.analysis.align.align import align
from nbkit.analysis.align.matching.by_position import is_same_code
from nbkit.analysis.align.side import Side
from tests.analysis.align.makers import execution, numbers

X, A, B = (numbers(seed, 4, 6) for seed in range(3))


def pairs(left, right):
    found = align(left, right)
    names = [[result.name for result in side.results] for side in (found.left, found.right)]
    return {(names[0][match.left], names[1][match.right], match.evidence, match.agrees) for match in found.matches.all}


def product(first, second):
    """Two products with weights of the same values, as they are at the start, and their sum."""
    return execution(
        ("x", None, [], X), ("k.weight", None, [], first), ("r.weight", None, [], second),
        ("key", "Mul", ["x", "k.weight"], X * first), ("gate", "Mul", ["x", "r.weight"], X * second),
        ("y", "Add", ["key", "gate"], X * first + X * second),
    )  # fmt: skip


def test_a_weight_is_not_taken_for_another_one_of_the_same_values():
    found = pairs(product(A, A), product(B, A))
    assert ("k.weight", "k.weight", "name", False) in found and ("key", "key", "name", False) in found
    assert not any(left == "k.weight" and right == "r.weight" for left, right, *_ in found)


def test_a_result_without_values_of_the_other_side_is_paired_with_its_place():
    """The right side's difference is gone at the end: its way there is the same code nevertheless."""
    steps = [[("x", None, [], X), ("a", "Tanh", ["x"], value), ("y", "Mul", ["x", "a"], B)] for value in (A, A + 1)]
    assert ("a", "a", "name", False) in pairs(*(execution(*one) for one in steps))


def test_other_code_is_paired_by_values_alone():
    left = execution(("x", None, [], X), ("a", "Tanh", ["x"], A), ("y", "Neg", ["a"], B))
    same = execution(("x", None, [], X), ("b", "Tanh", ["x"], A + 1), ("z", "Neg", ["b"], B))
    other_op = execution(("x", None, [], X), ("a", "Erf", ["x"], A + 1), ("y", "Neg", ["a"], B))
    other_source = execution(("x", None, [], X), ("a", "Tanh", ["x"], A + 1), ("y", "Neg", ["x"], B))
    other_state = execution(("v", None, [], X), ("a", "Tanh", ["v"], A), ("y", "Neg", ["a"], B))
    longer = execution(("x", None, [], X), ("a", "Tanh", ["x"], A), ("y", "Neg", ["a"], B), ("o", "Neg", ["y"], -B))
    code = [is_same_code(Side(left), Side(one)) for one in (left, same, other_op, other_source, other_state, longer)]
    assert code == [True, True, False, False, False, False]
    assert not any(evidence == "name" and left == "a" for left, _, evidence, _ in pairs(left, other_op))
