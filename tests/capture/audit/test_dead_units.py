"""Units that are 0 for all of a batch: layers that are named, and right ones that are not."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from tests.capture.audit.test_wrong_cases import audited

X, IMAGES = torch.randn(16, 8), torch.randn(4, 3, 6, 6)


def killed(layer, share=1.0):
    """A layer of which the first units give less than 0 for all inputs."""
    with torch.no_grad():
        layer.bias[: int(share * len(layer.bias))] = -100.0
    return layer


def found(model, x=X, count=1):
    trace = audited(lambda _: model(x).square().mean().backward(), count)
    findings = trace.findings[trace.findings["rule"] == "dead_units"]
    return list(findings.itertuples())


class Functional(nn.Module):
    def __init__(self, layer, act):
        super().__init__()
        self.layer, self.act, self.head = layer, act, nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.act(self.layer(x)))


ACTS = {
    "module": nn.ReLU(),
    "in place": nn.ReLU(inplace=True),
    "function": F.relu,
    "of torch": torch.relu,
    "method": torch.Tensor.relu,
    "method in place": lambda x: x.relu_(),
    "relu6": nn.ReLU6(),
    "in another shape": lambda x: F.relu(x.view(4, 4, 8)).view(16, 8),
    "behind a norm": nn.Sequential(killed(nn.LayerNorm(8)), nn.ReLU()),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_layer_of_which_no_unit_is_alive_is_a_warning(act):
    [finding] = found(Functional(killed(nn.Linear(8, 8)), ACTS[act]))
    assert finding.severity == "warning"
    assert finding.message == (
        "All 8 outputs of layer are 0 behind their activation, in each of 16 rows: nothing passes, and no gradient "
        "comes back"
    )
    assert json.loads(finding.evidence)["dead_units"] == 8
    assert "LeakyReLU" in finding.advice


def conv(share):
    return nn.Sequential(killed(nn.Conv2d(3, 16, 3), share), nn.ReLU(), nn.Flatten(), nn.Linear(256, 2))


def test_channels_are_the_units_of_a_convolution():
    [finding] = found(conv(1.0), IMAGES)
    assert "All 16 outputs of 0 are 0 behind their activation, in each of 64 rows" in finding.message
    assert found(conv(0.5), IMAGES) == []


def test_most_units_of_many_are_a_hint():
    def model(share):
        return nn.Sequential(killed(nn.Linear(8, 32), share), nn.ReLU(), nn.Linear(32, 2))

    [finding] = found(model(30 / 32))
    assert (finding.severity, json.loads(finding.evidence)["units"]) == ("hint", 32)
    assert finding.message.startswith("30 of 32 outputs of 0 are 0 behind their activation")
    assert found(model(0.8)) == []


def test_a_layer_that_is_alive_in_another_call_is_right():
    layer = nn.Linear(8, 8)
    model = Functional(layer, F.relu)
    with torch.no_grad():
        layer.weight.copy_(100 * torch.eye(8))
        layer.bias.fill_(-1.0)

    def step(i):
        model(torch.full((16, 8), 1.0 if i else -1.0)).square().mean().backward()

    assert [len(audited(step, count).findings.query("rule == 'dead_units'")) for count in (1, 2)] == [1, 0]


class Hinge(nn.Module):
    """A loss that is 0 where its margin is kept."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x)
        return F.relu(0.1 - (y + 1000)) + y


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 32)

    def forward(self, x):
        return F.relu(self.layer(x) * (torch.arange(32) < 2))


class Turned(nn.Module):
    """Has its channels last behind the convolution."""

    def __init__(self):
        super().__init__()
        self.layer = killed(nn.Conv2d(3, 4, 3), 0.5)

    def forward(self, x):
        return F.relu(self.layer(x).permute(0, 2, 3, 1))


RIGHT = {
    "a net": (nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)), X),
    "one row": (nn.Sequential(killed(nn.Linear(8, 8)), nn.ReLU(), nn.Linear(8, 2)), X[:1]),
    "few units": (nn.Sequential(killed(nn.Linear(8, 4)), nn.ReLU(), nn.Linear(4, 2)), X),
    "eval": (nn.Sequential(killed(nn.Linear(8, 8)), nn.ReLU(), nn.Linear(8, 2)).eval(), X),
    "LeakyReLU": (nn.Sequential(killed(nn.Linear(8, 8)), nn.LeakyReLU(), nn.Linear(8, 2)), X),
    "dropout": (nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.95), nn.Linear(32, 2)), X),
    "a hinge": (Hinge(), X),
    "a mask": (Masked(), X),
    "channels last": (Turned(), IMAGES),
    "an embedding": (nn.Sequential(nn.Embedding(3, 16), nn.ReLU(), nn.Linear(16, 2)), torch.zeros(16).long()),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_layer_is_not_named(case):
    model, x = RIGHT[case]
    assert found(model, x) == []


def test_without_a_backward_pass_nothing_is_said():
    model = Functional(killed(nn.Linear(8, 8)), F.relu)
    assert not len(audited(lambda _: model(X)).findings)


def test_results_that_cannot_be_read_are_left_alone():
    model = Functional(killed(nn.Linear(8, 8)), F.relu)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(weights, x):
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    trace = audited(lambda _: torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, X[:, None]))
    assert not [reason for reason in trace.meta["skipped"] if "activations" in reason]


def test_the_ops_are_those_of_optrace():
    model = conv(0.5)

    def ops(verb):
        model.zero_grad()
        with verb() as trace:
            model(IMAGES).square().mean().backward()
        return trace.ops["op"].tolist()

    assert ops(nbkit.opaudit) == ops(nbkit.optrace)


def test_without_the_native_recorder_dead_units_are_found_too(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    [finding] = found(Functional(killed(nn.Linear(8, 8)), F.relu))
    assert json.loads(finding.evidence)["dead_units"] == 8
