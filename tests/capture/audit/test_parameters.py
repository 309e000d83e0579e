"""The whole frame `parameters` of small steps, and what was noted of optimizers."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

import nbkit
from nbkit.capture.audit.leaks import leaks
from nbkit.capture.audit.models import Followed, Update, held_tensors


class Part(nn.Module):
    """A weight, the same once more, a frozen one, one that nothing reads, one without a size, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 1, bias=False)
        self.again, self.missing = self.inner.weight, nn.Parameter(torch.ones(3))
        self.frozen = nn.Parameter(torch.full((2,), 2.0), requires_grad=False)
        self.lazy, self.none = UninitializedParameter(), None
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        nn.init.ones_(self.inner.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return self.inner(x * self.frozen)


def rows(trace: Any, *columns: str) -> list[list[Any]]:
    table = trace.parameters[["name", *columns]].astype(object)
    return table.where(table.notna(), None).to_numpy().tolist()


def test_all_that_a_step_did_with_each_tensor() -> None:
    model = Part()
    groups = [
        {"params": [model.inner.weight], "lr": torch.tensor(0.5), "weight_decay": 0.25},
        {"params": [model.missing]},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.125)
    with nbkit.opaudit() as trace:
        model(torch.tensor([[1.0, 0.0]])).sum().backward()
        optimizer.step()
    fixed = ("kind", "module", "tied_with", "shape", "numel", "dtype", "device", "requires_grad", "calls")
    assert rows(trace, *fixed) == [
        ["again", "parameter", "", None, "[1, 2]", 2, "float32", "cpu", True, 1],
        ["missing", "parameter", "", None, "[3]", 3, "float32", "cpu", True, 1],
        ["frozen", "parameter", "", None, "[2]", 2, "float32", "cpu", False, 1],
        ["inner.weight", "parameter", "inner", "again", "[1, 2]", 2, "float32", "cpu", True, 1],
        ["count", "buffer", "", None, "[]", 1, "int64", "cpu", False, 1],
    ]
    # Of SGD: w - lr * (gradient + decay * w), with a gradient of [2, 0].
    moved = ("gradient", "gradient_norm", "gradient_zero_fraction", "update_fraction", "changed_fraction")
    assert rows(trace, *moved) == [
        ["again", "finite", 2.0, 0.5, pytest.approx((1.125**2 + 0.125**2) ** 0.5 / 2**0.5), 1.0],
        ["missing", "none", None, None, 0.0, 0.0],
        ["frozen", "none", None, None, 0.0, 0.0],
        ["inner.weight", None, None, None, None, None],
        ["count", None, None, None, None, 1.0],
    ]
    steps = ("in_optimizer", "optimizer_steps", "skipped_steps", "learning_rate", "weight_decay", "accumulated")
    assert rows(trace, *steps) == [
        ["again", 1, 1, 0, 0.5, 0.25, 0],
        ["missing", 1, 1, 0, 0.125, 0.0, 0],
        ["frozen", 0, 0, 0, None, None, None],
        ["inner.weight", None, None, None, None, None, None],
        ["count", None, None, None, None, None, None],
    ]
    assert (trace.meta["optimizer_steps"], trace.meta["skipped_steps"]) == (1, 0)
    assert trace.parameters["model"].unique().tolist() == ["Part"]


def test_the_second_step_adds_to_the_gradient_of_the_first() -> None:
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with nbkit.opaudit() as trace:
        for rate in (0.5, 0.25):
            optimizer.param_groups[0]["lr"] = rate
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    columns = ("calls", "optimizer_steps", "learning_rate", "gradient_norm", "accumulated")
    assert rows(trace, *columns) == [["weight", 2, 2, 0.5, pytest.approx(8**0.5), 1]]


def test_a_scaler_skips_and_a_closure_is_looked_at_after_the_step() -> None:
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    with nbkit.opaudit() as trace:
        scaler.scale(model(torch.full((1, 2), float("inf"))).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    columns = ("gradient", "in_optimizer", "optimizer_steps", "skipped_steps", "changed_fraction")
    assert rows(trace, *columns) == [["weight", "non_finite", 1, 0, 1, 0.0]]
    assert (trace.meta["optimizer_steps"], trace.meta["skipped_steps"]) == (0, 1)
    optimizer.zero_grad()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    with nbkit.opaudit() as trace:
        optimizer.step(closure)
    assert rows(trace, *columns) == [["weight", "finite", 1, 1, 0, 1.0]]
    assert rows(trace, "accumulated") == [["weight", 0]]


def test_a_model_that_another_calls_is_a_model_of_its_own() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.parts = nn.Linear(2, 1), [nn.Linear(2, 2)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.parts[0](self.parts[0](x)))

    model = Outer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with nbkit.opaudit(optimizer=optimizer) as trace:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert rows(trace, "model", "calls", "in_optimizer", "optimizer_steps", "gradient") == [
        ["head.weight", "Outer", 1, 1, 1, "finite"],
        ["head.bias", "Outer", 1, 1, 1, "finite"],
        ["weight", "Linear", 2, 0, 0, "finite"],
        ["bias", "Linear", 2, 0, 0, "finite"],
    ]
    ((finding),) = trace.findings[["rule", "severity"]].to_numpy().tolist()
    assert finding == ["not_in_optimizer", "warning"]
    assert "another model calls it without holding it in an attribute" in trace.findings["message"].iloc[0]


def test_optimizers_that_do_not_step_are_known_where_they_are_given() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD([model.weight], lr=0.5, weight_decay=0.125)
    with nbkit.opaudit([model], [optimizer]) as trace:
        model(torch.ones(1, 2)).sum().backward()
    columns = ("in_optimizer", "optimizer_steps", "learning_rate", "weight_decay", "gradient")
    assert rows(trace, *columns) == [["weight", 1, 0, 0.5, 0.125, "finite"], ["bias", 0, 0, None, None, "finite"]]


def test_a_parameter_that_is_computed_has_no_gradient_of_its_own() -> None:
    """As in meta-learning, where a module holds what an inner step made of its weight."""
    model = nn.Linear(2, 2)
    weight = model._parameters.pop("weight")
    model._parameters["weight"] = weight * 2  # type: ignore[operator]
    optimizer = torch.optim.SGD([weight, model.bias], lr=0.1)  # type: ignore[list-item]
    with nbkit.opaudit(model, optimizer) as trace:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert rows(trace, "gradient", "in_optimizer") == [["bias", "finite", 1], ["weight", None, 0]]


def test_names_of_what_a_model_holds() -> None:
    held = [(one.name, one.kind, one.module, one.tied_with) for one in held_tensors(Part())]
    assert held == [
        ("again", "parameter", "", None),
        ("missing", "parameter", "", None),
        ("frozen", "parameter", "", None),
        ("inner.weight", "parameter", "inner", "again"),
        ("count", "buffer", "", None),
    ]


def test_the_largest_rate_of_all_steps_and_the_last_decay_are_kept() -> None:
    followed = Followed()
    for rate, decay in ((0.5, 0.25), (None, None), (torch.tensor(0.25), 0.125)):
        followed.note_rates(rate, decay)
    assert (followed.learning_rate, followed.weight_decay) == (0.5, 0.125)
    followed.note_step(torch.zeros(2), Update(0, None, is_done=False, has_closure=False, has_gradient=True, rate=0.5))
    assert followed.gradient() == ("zero", 0.0, 1.0)
    followed.note_step(torch.ones(1), Update(1, None, is_done=True, has_closure=False, has_gradient=True, rate=0.25))
    assert followed.gradient() == ("finite", 1.0, 0.0)


def test_a_change_is_over_the_largest_element_and_infinite_where_nan_comes() -> None:
    def ahead(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[:, 1:], x[:, :1] * 0], 1)

    found = leaks(ahead, torch.tensor([[1.0, 2.0, 4.0]]))
    assert found.to_dict("list") == {"input_position": [1, 2], "output_position": [0, 1], "change": [1.25, 1.25]}
    found = leaks(lambda x: ahead(x) / (x != 7).float(), torch.tensor([[1.0, 2.0, 1.0, 1.0]]), dim=1)
    assert found["input_position"].tolist() == [1, 2, 3]
    found = leaks(lambda ids: ahead(ids.float()) * (2 - ids[:, :1]).log(), torch.tensor([[0, 1]]))
    assert found["output_position"].tolist() == [0]
