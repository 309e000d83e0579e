"""Values that a step asks for hold for views of one memory, whichever of them was taken or written first."""

import pytest
import torch

import nbkit

WAYS = pytest.mark.parametrize("way", ["auto", "run"])


def both_ways(step, way):
    """Returns what a step on shapes gives, and what the step gives when it runs."""
    answers = []
    nbkit.opcost(values=way).run(lambda: answers.append(step()))
    return answers[0], step()


@WAYS
def test_two_views_of_one_small_memory_have_their_own_values(way):
    base = torch.tensor([1.0, 2.0, 100.0, 200.0])
    first, second = base[:2], base[2:]
    counted, run = both_ways(lambda: (bool((first * 2).sum() > 0), (second + 0).tolist()), way)
    assert counted == run


CONJUGATE = torch.tensor([1 + 2j, 3 - 1j]).conj()


@WAYS
@pytest.mark.parametrize("step", [lambda: CONJUGATE.imag.tolist(), lambda: (CONJUGATE * 2).conj().tolist()])
def test_conjugates_have_the_values_that_reading_them_gives(step, way):
    counted, run = both_ways(step, way)
    assert counted == run
