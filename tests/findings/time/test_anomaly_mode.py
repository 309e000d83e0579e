"""torch.autograd.set_detect_anomaly, told by what autograd runs because of it."""

import pytest
import torch

import nbkit


@pytest.mark.parametrize("is_on", [True, False])
def test_anomaly_detection_is_told_where_it_is_on(is_on):
    model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    with nbkit.optime() as trace, torch.autograd.set_detect_anomaly(is_on):
        assert not model(x).isnan().any()  # a look of the user's own
        model(x).square().mean().backward()
    found = trace.findings[trace.findings["rule"] == "anomaly_mode"]
    assert len(found) == is_on
    if is_on:
        nodes = trace.ops["op"].str.startswith("autograd::engine::evaluate_function").sum()
        checks = trace.ops["op"].str.startswith("aten._is_any_true").sum()
        assert (
            found["message"]
            .iloc[0]
            .startswith("Anomaly detection is on: torch keeps the Python stack of each forward op")
        )
        assert f"looks for NaN in {checks} gradients, which takes" in found["message"].iloc[0]
        assert 0 < checks <= nodes + 2
        assert found["effect_us"].iloc[0] > 0
        # Such a mode makes all else slow, too: it is told before what could merely be faster.
        assert found["severity"].tolist() == ["warning"]
