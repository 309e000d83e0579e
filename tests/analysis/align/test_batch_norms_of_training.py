"""A batch norm in train mode that is exported to ONNX is one of inference there, and the verdict says so."""

import pytest
import torch
from torch import nn

import nbkit

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


def test_the_verdict_says_why_gradients_differ(model):
    trace = nbkit.opalign(model, "onnx", inputs=torch.randn(6, 4), backward=True)
    assert trace.meta["first_divergence"]["right"]["op"] == "BatchNormalization"
    said = trace.brief().replace("\n", " ")
    assert "The left batch norms take the statistics of the batch" in said and "call eval() on the model" in said


def test_in_eval_mode_nothing_is_said(model):
    trace = nbkit.opalign(model.eval(), "onnx", inputs=torch.randn(6, 4))
    assert trace.meta["first_divergence"] is None and "batch norms" not in trace.brief()
