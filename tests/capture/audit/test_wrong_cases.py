"""Tests that opaudit names what is wrong: the rule, the parameters, the line."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import nbkit
from tests.capture.audit.right.shared import Net, batch, mlp, trains


def audited(step, count=1, **options):
    with nbkit.opaudit(**options) as trace:
        for i in range(count):
            step(i)
    return trace


def only(trace):
    """The one finding of a trace."""
    [finding] = trace.findings.itertuples()
    return finding


class Cut(nn.Module):
    """Lets the encoder's output through a function that cuts the graph."""

    def __init__(self, through) -> None:
        super().__init__()
        self.encoder, self.head = mlp(8, 8, 8), nn.Linear(8, 2)
        self.through = through

    def forward(self, x: Tensor) -> Tensor:
        z = self.encoder(x)
        z = self.through(z)
        return self.head(z)


def in_two_lines(z):
    values = z.detach().numpy()
    return torch.from_numpy(values + 1)


CUTS = {
    "detach": (lambda z: z.detach().clamp(-5, 5), "aten.detach"),
    "numpy": (lambda z: torch.from_numpy(z.detach().numpy() + 1), "aten.detach"),
    "numpy, a part": (lambda z: torch.from_numpy(z.detach().numpy()[:4, :8] + 1).repeat(2, 1), "aten.detach"),
    "numpy, two lines": (in_two_lines, "aten.detach"),
    "list": (lambda z: torch.tensor(z.tolist()), "where a tensor is made of plain values"),
    "data": (lambda z: z.data * 2, "reads .data"),
    "comparison": (lambda z: (z > 0).float(), "aten.gt"),
    "choice": (lambda z: F.one_hot(z.argmax(-1), 8).float(), "aten.argmax"),
}


@pytest.mark.parametrize("how", CUTS)
def test_the_op_that_cuts_the_graph_is_named(how):
    through, op = CUTS[how]
    model = Cut(through)
    finding = only(audited(trains(model, torch.optim.Adam(model.parameters()))))
    assert (finding.rule, finding.severity, finding.count) == ("no_gradient", "warning", 4)
    assert finding.message.startswith("encoder.0, encoder.2 (4 tensors) get no gradient; the graph is cut ")
    # Without the built recorder reading .data is an op of its own.
    assert f"{op} at " in finding.message or (how, "by aten.detach at " in finding.message) == ("data", True)
    assert "test_wrong_cases.py" in finding.source
    assert ("values = z.detach().numpy()" if through is in_two_lines else "lambda z") in finding.source_text
    assert json.loads(finding.evidence)["parameters"][0] == "encoder.0.weight"


def test_a_module_under_no_grad_is_a_hint():
    def without(z):
        return z

    model = Cut(without)
    model.encoder.forward = torch.no_grad()(model.encoder.forward)
    finding = only(audited(trains(model, torch.optim.Adam(model.parameters()))))
    assert (finding.rule, finding.severity) == ("no_gradient", "hint")
    assert "runs without autograd (torch.no_grad)" in finding.message


def test_parameters_missing_in_the_optimizer_are_named():
    model = Net()
    finding = only(audited(trains(model, torch.optim.Adam(model.encoder.parameters()))))
    assert (finding.rule, finding.severity, finding.count) == ("not_in_optimizer", "warning", 2)
    assert finding.message == "head (2 tensors) get gradients but are in no optimizer"


def test_an_optimizer_of_another_copy_is_named():
    model = Net()
    finding = only(audited(trains(model, torch.optim.SGD(Net().parameters(), 0.1))))
    assert finding.severity == "warning"
    assert finding.message == (
        "6 parameters of Net get gradients but are in no optimizer; the optimizer steps, but none "
        "of its own parameters gets a gradient"
    )


class Unregistered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = [nn.Linear(8, 8), nn.Linear(8, 8)], nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def test_layers_in_a_plain_list_are_named():
    model = Unregistered()
    trace = audited(trains(model, torch.optim.SGD(model.parameters(), 0.1)))
    assert trace.findings["severity"].tolist() == ["warning", "warning"]
    assert "another model calls it without holding it in an attribute" in trace.findings["message"][0]


def test_parameters_that_no_op_reads_are_a_hint():
    model = Net()
    model.spare = nn.Linear(3, 3)
    finding = only(audited(trains(model, torch.optim.Adam(model.parameters()))))
    assert (finding.rule, finding.severity) == ("never_called", "hint")
    assert finding.message == "The optimizer holds spare (2 tensors), but no op of the recording reads them"


def forgets_zero_grad():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(_):
        model(batch()).square().mean().backward()
        optimizer.step()

    return step


def test_a_missing_zero_grad_is_certain_from_the_second_step():
    finding = only(audited(forgets_zero_grad(), 2))
    assert (finding.rule, finding.severity, finding.phase) == ("accumulated_gradient", "error", "backward")
    assert finding.message == (
        "The backward pass adds the gradients of all 6 parameters of Net to those of the step before, and the "
        "optimizer uses the sum"
    )
    assert ".backward()" in finding.source_text


def test_one_step_with_gradients_from_before_is_a_hint():
    step = forgets_zero_grad()
    first, second = audited(step), audited(step)
    assert (len(first.findings), only(second).severity) == (0, "hint")
    assert (first.parameters["accumulated"].tolist(), second.parameters["accumulated"].tolist()) == ([0] * 6, [1] * 6)


def test_a_step_that_forgets_one_part_names_that():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(_):
        model.encoder.zero_grad()
        model(batch()).square().mean().backward()
        optimizer.step()

    assert "gradients of head (2 tensors) to those of the step before" in only(audited(step, 2)).message


def test_updates_that_rounding_loses_are_named():
    model = mlp(64, 64, 64).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-6)

    def step(_):
        optimizer.zero_grad()
        model(batch(64).bfloat16()).square().mean().backward()
        optimizer.step()

    finding = only(audited(step))
    assert (finding.rule, finding.severity) == ("lost_update", "warning")
    assert "bfloat16 rounds w - 1e-06 * update back to w" in finding.message


def test_gradients_that_float16_cannot_hold_are_named():
    model = mlp(8, 8, 8).half()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_):
        optimizer.zero_grad()
        (model(batch().half()).float().square().mean() * 1e-9).backward()
        optimizer.step()

    finding = only(audited(step))
    assert (finding.rule, finding.severity) == ("zero_gradient", "warning")
    assert "float16 rounds what is below 6e-8 to 0" in finding.message


def test_a_dead_layer_is_named_after_some_steps():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    nn.init.constant_(model[0].bias, -100.0)
    step = trains(model, torch.optim.SGD(model.parameters(), 0.1))

    def gradients(count):
        findings = audited(step, count).findings
        assert sorted(findings["rule"]) == ["dead_units", "zero_gradient"]
        return next(findings[findings["rule"] == "zero_gradient"].itertuples())

    assert [gradients(count).severity for count in (1, 3)] == ["hint", "warning"]
    message = gradients(3).message
    # What the second layer reads is 0, so that its weight gets none either.
    assert message == "The gradients of 0, 2.weight (3 tensors) are exactly 0 in every element at all 3 steps"


def test_nan_in_a_gradient_that_is_used_is_an_error():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_):
        optimizer.zero_grad()
        (model(batch()).mean() + model.head.bias.mul(0).sqrt().sum() * 0).backward()
        optimizer.step()

    with torch.no_grad():
        model.head.bias.zero_()
    finding = only(audited(step))
    assert (finding.rule, finding.severity, finding.parameter) == ("non_finite_gradient", "error", "head.bias")
    assert finding.message == "The optimizer uses NaN or Inf in the gradient of head.bias"


def test_gradients_that_vanish_along_the_depth_are_named():
    layers = [layer for _ in range(8) for layer in (nn.Linear(16, 16), nn.Sigmoid())]
    model = nn.Sequential(*layers, nn.Linear(16, 2))

    def step(_):
        model(torch.randn(4, 16)).square().mean().backward()

    finding = only(audited(step))
    assert finding.rule == "vanishing_gradient"
    assert "per layer along 8 Linear layers of Sequential" in finding.message


def test_gradients_that_explode_along_the_depth_are_named():
    class Waves(nn.ModuleList):
        def forward(self, x):
            for layer in self:
                x = torch.sin(layer(x))
            return x

    model = Waves(nn.Linear(16, 16) for _ in range(10))
    for layer in model:
        nn.init.normal_(layer.weight, std=4)

    def step(_):
        model(torch.randn(4, 16)).sum().backward()

    finding = only(audited(step))
    assert finding.rule == "exploding_gradient"
    assert "The gradient grows toward the input by a factor of " in finding.message


def test_a_scaler_that_skips_each_step_is_named():
    model = Net()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu")
    with torch.no_grad():
        model.head.weight[0] = 0

    def step(_):
        optimizer.zero_grad()
        rows = model.head.weight.pow(2).sum(1).sqrt().sum()
        scaler.scale(model(batch()).square().mean() + rows).backward()
        scaler.step(optimizer)
        scaler.update()

    one, five = only(audited(step)), only(audited(step, 5))
    assert (one.rule, one.severity, five.severity, five.count) == ("skipped_step", "hint", "warning", 5)
    assert one.message == (
        "GradScaler skips the step of SGD (scale 65536): NaN or Inf is in the gradient of head.weight"
    )
    assert five.message.startswith("GradScaler skips all 5 optimizer steps of SGD (scale 32768 to 2048)")


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.drop = nn.Linear(8, 8), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.a(self.drop(x)), 0.3)


def test_dropout_that_draws_in_eval_mode_is_named():
    model = Functional().eval()
    with torch.no_grad():
        finding = only(audited(lambda _: model(batch()), 2))
    assert (finding.rule, finding.severity, finding.count) == ("dropout_in_eval", "warning", 2)
    assert finding.message.startswith("aten.bernoulli_ draws random numbers for a dropout in eval mode at ")
    assert finding.source_text.strip() == "return F.dropout(self.a(self.drop(x)), 0.3)"
    assert not len(audited(lambda _: model.train()(batch())).findings)


def test_training_in_eval_mode_is_a_hint():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).eval()
    finding = only(audited(trains(model, torch.optim.SGD(model.parameters(), 0.1))))
    assert (finding.rule, finding.severity) == ("trained_in_eval", "hint")
    assert finding.message == "The optimizer trains Sequential in eval mode, in which its Dropout layers are off"
