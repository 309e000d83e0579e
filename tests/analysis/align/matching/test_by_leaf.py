"""Matching of gradients by what they are of: fused weights, rows in another order, and rows in a wrong place."""

from dataclasses import replace

import numpy as np
import pytest

from nbkit.analysis.align.align import align
from nbkit.analysis.align.first_divergence import first_divergence
from nbkit.analysis.align.matching.by_leaf import slices_of
from tests.analysis.align.makers import execution, numbers

X, Q, K = numbers(0, 4, 6), numbers(1, 4, 6), numbers(2, 4, 6)
Y = numbers(3, 4, 6)
GRADIENTS = {"q": numbers(4, 4, 6), "k": numbers(5, 4, 6)}


def run(weights: dict[str, np.ndarray], gradients: dict[str, np.ndarray]):
    """A model of these weights, and their gradients."""
    names = {f"grad of {name}": name for name in weights}
    made = execution(
        ("x", None, [], X),
        *((name, None, [], value) for name, value in weights.items()),
        ("y", "Exp", ["x", *weights], Y),
        *((f"grad of {name}", "Abs", ["y"], gradients[name]) for name in weights),
        outputs=["y", *names],
    )
    numbered = {result.name: result.result_id for result in made.results}
    return replace(made, gradients={numbered[leaf]: numbered[name] for name, leaf in names.items()})


def two(gradients: dict[str, np.ndarray], q: np.ndarray = Q, k: np.ndarray = K):
    of = GRADIENTS | gradients
    return run({"q.weight": q, "k.weight": k}, {"q.weight": of["q"], "k.weight": of["k"]})


def fused(weights: list[np.ndarray], gradients: list[np.ndarray]):
    return run({"qk.weight": np.concatenate(weights)}, {"qk.weight": np.concatenate(gradients)})


def pairs(alignment) -> set[tuple[str, str, str | None]]:
    left, right = alignment.left.results, alignment.right.results
    return {
        (left[match.left].name, right[match.right].name, match.part)
        for match in alignment.matches.all
        if left[match.left].name.startswith("grad") and match.agrees
    }


def test_the_gradient_of_a_fused_weight_holds_those_of_its_parts():
    whole = fused([Q, K], [*GRADIENTS.values()])
    for sides, part in (((whole, two({})), "slice"), ((two({}), whole), "concat")):
        found = align(*sides)
        assert {found[2] for found in pairs(found)} == {part} and len(pairs(found)) == 2
        assert first_divergence(found) is None


@pytest.mark.parametrize("zeros", [(0, 0), (0, 1)])
def test_weights_that_are_all_zeros_have_gradients_all_the_same(zeros):
    q, k = (weight * factor for weight, factor in zip((Q[:, 0], K[:, 0]), zeros, strict=True))
    of = {name: value[:, 0] for name, value in GRADIENTS.items()}
    found = align(fused([q, k], [*of.values()]), two(of, q, k))
    assert len(pairs(found)) == 2 and first_divergence(found) is None


@pytest.mark.parametrize(
    "wrong", [GRADIENTS["k"] * np.float32(1.0001), GRADIENTS["k"][::-1]], ids=["scaled", "reversed"]
)
def test_a_part_that_is_no_part_differs_alone(wrong):
    whole = fused([Q, K], [*GRADIENTS.values()])
    for sides, side in (((whole, two({"k": wrong})), "right"), ((two({"k": wrong}), whole), "left")):
        assert first_divergence(align(*sides))[side]["name"] == "grad of k.weight"


def test_gradients_that_are_not_where_their_weights_are_differ():
    exchanged = two({"q": GRADIENTS["k"], "k": GRADIENTS["q"]})
    found = align(fused([Q, K], [*GRADIENTS.values()]), exchanged)
    assert pairs(found) == set() and first_divergence(found) is not None


def test_gradients_of_weights_whose_rows_stand_in_another_order_are_a_pair():
    order = [2, 0, 3, 1]
    turned, wrong = (run({"w": weight}, {"w": GRADIENTS["q"][order]}) for weight in (Q[order], Q))
    left = run({"q.weight": Q}, {"q.weight": GRADIENTS["q"]})
    assert pairs(align(left, turned)) == {("grad of q.weight", "grad of w", None)}
    assert pairs(align(left, wrong)) == set()


def test_slices_lie_in_one_or_in_equal_groups():
    found = {tuple(places.tolist()) for places in slices_of(6, 2)}
    assert found == {(0, 1), (2, 3), (4, 5), (0, 3), (1, 4), (2, 5)}
    assert [places.tolist() for places in slices_of(3, 3)] == [[0, 1, 2]] * 2


def test_many_slices_are_looked_for_one_behind_the_other_alone():
    assert [places[0] for places in slices_of(68, 5)] == list(range(64))
    assert [places[0] for places in slices_of(69, 5)] == list(range(0, 65, 5))
