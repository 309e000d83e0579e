"""What opaudit cannot look at is counted with its reason; the step runs on, and the rest is audited."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nbkit.capture.audit import models, observer
from nbkit.capture.audit.measures import measured_gradient
from tests.capture.audit.right.shared import Net, batch
from tests.capture.audit.test_wrong_cases import audited

FLOAT8 = torch.float8_e4m3fn  # torch cannot add up its elements


class Eight(nn.Module):
    """Has a parameter in float8, and a gradient of it in float8."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(2, 2).to(FLOAT8)), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * self.scale.float()


class Widening(torch.optim.Optimizer):
    """Steps in float32 whatever parameters and gradients are in."""

    def __init__(self, parameters) -> None:
        super().__init__(parameters, {})

    def step(self, closure=None) -> None:
        for parameter in self.param_groups[0]["params"]:
            with torch.no_grad():
                parameter.copy_(parameter.float() - parameter.grad.float())


class Rounded(Tensor):
    """Rounds what ReLU returns to float8."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
            return out.to(FLOAT8) if func is F.relu else out


class Activating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.inner(x).as_subclass(Rounded))


def troubles(trace) -> dict[str, int]:
    return {reason: count for reason, count in trace.meta["skipped"].items() if "API calls" not in reason}


def test_gradients_in_float8_are_measured() -> None:
    model = Eight()
    trace = audited(lambda _: model(torch.ones(1, 2)).sum().backward())
    assert troubles(trace) == {} and model.scale.grad.dtype is FLOAT8
    assert trace.parameters.loc[0, ["name", "gradient"]].tolist() == ["scale", "finite"]


def test_gradients_that_cannot_be_measured_are_counted(monkeypatch) -> None:
    def measured(gradient):
        if gradient is not None and gradient.dtype is FLOAT8:
            raise NotImplementedError("a dtype without kernels")
        return measured_gradient(gradient)

    monkeypatch.setattr(models, "measured_gradient", measured)
    model = Eight()
    optimizer = Widening([model.scale])

    def step(_):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    trace = audited(step)
    assert troubles(trace) == {"gradients not looked at (NotImplementedError)": 1}
    assert trace.complete and trace.meta["optimizer_steps"] == 1
    assert trace.parameters["name"].tolist() == ["scale", "inner.weight", "inner.bias"]
    # A gradient that is there when the model is met for the first time.
    model(torch.ones(1, 2)).sum().backward()
    assert model.scale.grad.dtype is FLOAT8
    other = Net()
    trace = audited(lambda _: (model(torch.ones(1, 2)), other(batch())))
    assert troubles(trace) == {"models not audited (NotImplementedError)": 1}
    assert len(trace.parameters) == 6


def test_an_activation_that_cannot_be_added_up_is_counted() -> None:
    results = []
    trace = audited(lambda _: results.append(Activating()(torch.ones(3, 2))))
    assert results[0].dtype is FLOAT8
    assert troubles(trace) == {"activations not looked at (NotImplementedError)": 1}


def test_copies_that_cannot_be_compared_are_counted(monkeypatch) -> None:
    def fails(models, labels):
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(observer, "parted_copies", fails)
    trace = audited(lambda _: Net()(batch()))
    assert troubles(trace) == {"copies of parameters not looked at (RuntimeError)": 1}
    assert (trace.complete, len(trace.findings)) == (True, 0)
