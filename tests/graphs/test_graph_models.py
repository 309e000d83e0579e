"""The models that graphs are read from: each exports, and its exports compute what the model does."""

import numpy as np
import onnxruntime
import pytest
import torch

from tests.support.graph_models import MODELS, batch, exported, model, onnx_bytes


def logits(out):
    return out if isinstance(out, torch.Tensor) else out.logits


@pytest.mark.parametrize("name", MODELS)
def test_the_exported_program_gives_the_logits_of_the_model(name):
    expected = logits(model(name)(batch()))
    assert torch.equal(logits(exported(name).module()(batch())), expected)
    assert expected.std() > 0


@pytest.mark.parametrize("name", ["rwkv4", "llama"])
def test_onnxruntime_gives_the_logits_of_the_model(name):
    session = onnxruntime.InferenceSession(onnx_bytes(name))
    (found,) = session.run(None, {session.get_inputs()[0].name: batch().numpy()})
    np.testing.assert_allclose(found, model(name)(batch()).detach(), rtol=1e-3, atol=1e-6)
