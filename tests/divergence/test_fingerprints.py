"""Which tensors of two runs have one number: those whose statistics are the same but for rounding."""

from nbkit.divergence.fingerprints import fingerprints
from nbkit.divergence.runs import run_of
from nbkit.step.step import Step
from tests.support.fakes import make_ops, make_tensors

NAN = float("nan")


def run(*rows, dtype="float32"):
    """Makes a run that has written tensors of these (numel, norm, min, max)."""
    tensors = make_tensors(*((number, "output", number) for number in range(len(rows)))).assign(dtype=dtype)
    for place, name in enumerate(("numel", "norm", "min", "max")):
        tensors[name] = [row[place] for row in rows]
    return run_of(Step(make_ops(*({"op": "aten.exp.default"} for _ in rows)), tensors))


def agree(left, right, **options):
    (ours,), (theirs,) = fingerprints(run(left, **options), run(right, **options))
    return ours == theirs


def test_rounding_is_no_difference_and_more_is():
    assert agree((16, 3.0, -1.0, 2.0), (16, 3.0 + 1e-6, -1.0, 2.0 + 1e-6))
    for other in ((16, 3.001, -1.0, 2.0), (16, 3.0, -1.001, 2.0), (16, 3.0, -1.0, 2.001), (8, 3.0, -1.0, 2.0)):
        assert not agree((16, 3.0, -1.0, 2.0), other)


def test_rounding_is_that_of_the_dtype():
    assert agree((16, 3.0, -1.0, 2.0), (16, 3.03, -1.0, 2.0), dtype="bfloat16")
    assert not agree((16, 3.0, -1.0, 2.0), (16, 3.0 + 1e-6, -1.0, 2.0), dtype="float64")


def test_signs_count_and_zeros_are_equal():
    assert not agree((16, 3.0, -1.0, 2.0), (16, 3.0, -2.0, 1.0))
    assert agree((16, 0.0, 0.0, 0.0), (16, 0.0, -0.0, 0.0))


def test_what_is_not_known_has_no_number():
    left, right = fingerprints(run((16, NAN, NAN, NAN), (16, 3.0, -1.0, 2.0)), run((16, float("inf"), 0.0, 1.0)))
    assert (left[0], right[0]) == (-1, -1) and left[1] >= 0
