"""The truth about pairs of ONNX models: it finds the exporter's own names again, and nothing where nothing is."""

import numpy as np
import pytest

from tests.align_cases.onnx_models import SMALL, results_of
from tests.align_cases.onnx_pairs import MAKERS, pair, truth
from tests.align_cases.planted_onnx import KINDS, PLANTS, planted
from tests.support.installed import needs

pytestmark = needs("onnxruntime", "onnxscript", "transformers")


@pytest.mark.parametrize("makers", MAKERS)
def test_every_result_of_a_decoder_is_found_again(makers):
    case = pair("decoder", 64, makers, SMALL)
    left, right = results_of(case.left, case.inputs), results_of(case.right, case.inputs)
    found = truth(left, right)
    assert list(found) == list(right)
    assert all(found.values())
    kept = [name for name in right if name in left]  # exporter and onnxruntime keep the names of what they keep
    assert len(kept) > len(right) / 2
    assert all(name in found[name] for name in kept)


def test_equal_up_to_reshape_and_order_of_axes():
    x = np.random.default_rng(0).standard_normal((2, 6, 4, 3)).astype(np.float32)
    heads = {
        "view": x.reshape(2, 6, 12),
        "moved": x.transpose(0, 2, 1, 3),
        "folded": x.transpose(0, 2, 1, 3).reshape(8, 6, 3),
        "reversed": x[:, ::-1].copy(),
        "negative": -x,
        "near": x + np.float32(0.01),
    }
    found = truth({"x": x, "flat": x.reshape(12, 12)}, heads)
    assert [name for name, others in found.items() if others] == ["view", "moved", "folded"]
    assert found["folded"] == {"x", "flat"}


def test_kinds_of_values_are_told_apart():
    left = {"mask": np.array([True, False]), "numbers": np.array([1, 0]), "nan": np.array([np.nan, 1.0])}
    right = {"a": np.array([[1], [0]]), "b": np.array([np.nan, 1.0]), "c": np.array([np.inf, 1.0])}
    assert truth(left, right) == {"a": {"numbers"}, "b": {"nan"}, "c": set()}


def first_to_differ(case):
    """The results that differ from the left model's of that name, or are new, and read none that does."""
    left, right = (results_of(model, case.inputs) for model in (case.model_left, case.model_right))
    wrong = {name for name in right if name not in left or not np.array_equal(left[name], right[name], equal_nan=True)}
    return {
        name
        for node in case.model_right.graph.node
        for name in node.output
        if name in wrong and not wrong & set(node.input)
    }


def test_what_is_planted_begins_where_it_is_said_to():
    cases = list(planted())
    assert len(cases) == len(PLANTS) == 30
    assert len({case.name for case in cases}) == 30
    assert {case.kind for case in cases} == set(KINDS)
    for case in cases:
        first = first_to_differ(case)
        assert first and first <= case.places_right, case.name


def test_what_is_planted_changes_the_output():
    for case in planted():
        (output,) = (each.name for each in case.model_left.graph.output)
        left, right = (results_of(model, case.inputs)[output] for model in (case.model_left, case.model_right))
        assert np.isfinite(left).all()
        assert not np.linalg.norm(right - left) <= 1e-6 * np.linalg.norm(left), case.name


def test_places_in_the_exported_model_are_there():
    for case in planted(against="exported"):
        names = {name for node in case.model_left.graph.node for name in node.output}
        assert case.places_left & names, case.name
