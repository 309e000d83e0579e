"""The step beside a shadow computes what the bare one computes, to the bit, and leaves the generator as that does."""

import pytest

from tests.capture.against.runs import against
from tests.capture.diff.test_bit_identity import left_by
from tests.capture.models import MODELS, OPTIMIZERS, bits, mlp, trained
from tests.capture.test_bit_identity_ways import WAYS


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_three_training_steps_compute_the_same_bits(model, optimizer):
    bare, traced = bits(trained(model, optimizer)), []
    trace = against(lambda: traced.extend(bits(trained(model, optimizer))))
    assert traced == bare
    assert trace.complete and trace.meta["first_divergence"] is None


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_train_computes_the_same_bits(way):
    bare, _ = left_by(WAYS[way], mlp(), lambda step: step())
    traced, trace = left_by(WAYS[way], mlp(), against)
    assert traced == bare
    assert trace.complete and trace.meta["first_divergence"] is None
    assert set(trace.diffs["error_class"].dropna()) == {"clean"}
