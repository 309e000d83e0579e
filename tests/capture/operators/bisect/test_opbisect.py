"""Finds planted faults of the simulated device, and says what it cannot find."""

import random
from collections import Counter
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from tests.capture.models import bits
from tests.support.simulated import simulated_device


class NumberedCalls(TorchDispatchMode):
    """Counts the calls of each op of a step, wherever they run, and answers whether the running one has a fault."""

    def __init__(self, planted):
        super().__init__()
        self.planted, self.counts, self.is_planted = planted, Counter(), False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.is_planted = (str(func), self.counts[str(func)]) in self.planted
        self.counts[str(func)] += 1
        return func(*args, **(kwargs or {}))


class Faulty:
    """A training step on the device whose calls in `planted` go wrong; `is_right` compares it with the CPU."""

    def __init__(self, *planted):
        self.device, self.planted = simulated_device(), set(planted)
        self.expected = self.made("cpu")()
        self.run = self.made(self.device.torch_device)

    def made(self, device):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 8), nn.LayerNorm(8)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        x = torch.randn(4, 6).to(device)
        self.state = [model, optimizer]

        def run():
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return [loss.detach().cpu(), *(parameter.detach().cpu().clone() for parameter in model.parameters())]

        state = torch.get_rng_state()
        return lambda: torch.set_rng_state(state) or run()

    def step(self):
        mode = NumberedCalls(self.planted)
        fault = nbkit.Fault("*", "relative_error", 0.1, where=lambda tensors: mode.is_planted)
        with self.device.planted(fault), mode:
            return self.run()

    def is_right(self, values):
        return all(torch.allclose(*pair, rtol=1e-5) for pair in zip(values, self.expected, strict=True))


PLANTED = [("aten.addmm.default", 1)], [("aten.tanh.default", 0), ("aten.mm.default", 0), ("aten.sqrt.default", 2)]


def held(faulty):
    return [value.cpu() for value in faulty.state[0].state_dict().values()]


@pytest.mark.parametrize("order", ["local error", "call"])
@pytest.mark.parametrize("planted", PLANTED)
def test_planted_calls_are_found_in_forward_backward_and_optimizer(planted, order):
    faulty = Faulty(*planted)
    before = bits(held(faulty))
    trace = nbkit.opbisect(faulty.step, faulty.is_right, state=faulty.state, order=order)
    assert {(one["op"], one["call"]) for one in trace.meta["culprits"]} == set(planted)
    assert trace.meta["verdict"].endswith("without it it fails." if len(planted) == 1 else "any one of them it fails.")
    assert bits(held(faulty)) == before
    assert not faulty.state[1].state
    for culprit in trace.meta["culprits"]:
        row = trace.ops.loc[culprit["op_id"]]
        assert (row["op"], row["phase"]) == (culprit["op"], culprit["phase"])
    assert (trace.findings["rule"] == "culprit").all()
    assert trace.findings["op_id"].tolist() == [one["op_id"] for one in trace.meta["culprits"]]
    assert "model(x).square().sum()" in trace.findings["source_text"].dropna().tolist()[0]
    assert len(trace.findings) == len(planted)


def test_trials_say_what_was_replaced_and_what_became_of_it():
    faulty = Faulty(("aten.addmm.default", 1))
    trace = nbkit.opbisect(faulty.step, faulty.is_right, state=faulty.state, ops="addmm,tanh")
    assert trace.trials["stage"].tolist() == ["nothing", "all", "search", "confirm"]
    assert trace.trials["passed"].tolist() == [False, True, True, True]
    assert trace.trials["chosen"].tolist()[1:3] == [
        '{"aten.addmm.default": "0:2", "aten.tanh.default": "0"}',
        '{"aten.addmm.default": "1"}',
    ]
    assert trace.meta["candidates"] == 3
    assert trace.meta["culprits"][0] | {"source": None, "op_id": None} == {
        "op": "aten.addmm.default",
        "call": 1,
        "module": "3",
        "phase": "forward",
        "source": None,
        "op_id": None,
    }


def test_a_cause_that_is_not_in_the_ops_is_said_to_be_elsewhere():
    x = torch.ones(3)
    trace = nbkit.opbisect(lambda: x.exp().sum(), lambda value: value < 0)
    assert trace.meta["verdict"] == (
        "The step fails also with every op on the CPU, 2 calls: the cause is not in these."
    )
    assert trace.meta["culprits"] == []
    assert trace.findings["rule"].tolist() == ["no_culprit"]
    assert len(trace.trials) == 2


def test_a_step_that_passes_needs_one_trial():
    trace = nbkit.opbisect(lambda: torch.ones(3).exp(), lambda value: True)
    assert trace.meta["verdict"] == "The step passes the check as it is: there is nothing to find."
    assert (len(trace.trials), trace.findings["severity"].tolist()) == (1, ["hint"])
    assert trace.meta["skipped"] == {}  # that calls were only to be listed is no gap of the trace


def test_a_half_precision_kernel_at_fault_is_found_by_a_cast():
    faulty = Faulty()
    x = torch.randn(4, 4, dtype=torch.bfloat16).to(faulty.device.torch_device)

    def step():
        mode = NumberedCalls({("aten.mm.default", 2)})
        fault = nbkit.Fault(
            "mm", size=0.2, where=lambda tensors: mode.is_planted and tensors[0].dtype == torch.bfloat16
        )
        with faulty.device.planted(fault), mode:
            y = x
            for _ in range(4):
                y = torch.tanh(y @ x)
            return y.float().cpu() + torch.ones(4).exp()

    y = x.cpu()
    for _ in range(4):
        y = torch.tanh(y @ x.cpu())
    expected = y.float() + torch.ones(4).exp()
    trace = nbkit.opbisect(step, lambda values: torch.allclose(values, expected, atol=0.01), by="cast")
    assert [(one["op"], one["call"]) for one in trace.meta["culprits"]] == [("aten.mm.default", 2)]
    assert "aten.exp.default" not in trace.trials["chosen"][1]
    assert trace.meta["verdict"] == "With one call in float32 the step passes, without it it fails."


def test_only_half_precision_can_be_cast():
    trace = nbkit.opbisect(lambda: torch.ones(3).exp(), lambda value: False, by="cast")
    assert trace.meta["verdict"] == (
        "Nothing was found: no call has a tensor in float16 or bfloat16, which could be cast."
    )


def test_a_function_says_what_replacing_means():
    active = set()

    @contextmanager
    def repaired(calls):
        active.update(call.call for call in calls if call.op == "aten.exp.default")
        yield
        active.clear()

    def step():
        [torch.ones(2).exp() for _ in range(9)]
        return frozenset(active)

    trace = nbkit.opbisect(step, lambda value: {2, 7} <= value, by=repaired)
    assert [(one["op"], one["call"]) for one in trace.meta["culprits"]] == [
        ("aten.exp.default", 2),
        ("aten.exp.default", 7),
    ]
    assert trace.meta["by"] == "repaired"


def test_a_step_that_raises_fails_and_an_error_of_the_check_is_the_users():
    faulty = Faulty(("aten.tanh.default", 0))

    def step():
        values = faulty.step()
        if not faulty.is_right(values):
            raise ValueError("far off")
        return values

    trace = nbkit.opbisect(step, lambda values: True, state=faulty.state)
    assert [one["op"] for one in trace.meta["culprits"]] == ["aten.tanh.default"]
    assert trace.trials["message"][0] == "the step raised ValueError: far off"
    with pytest.raises(NameError):
        nbkit.opbisect(step, lambda values: unknown, state=faulty.state)  # noqa: F821


@pytest.mark.parametrize(("said", "told"), [(["too large"], "the check: too large"), ([], "")])
def test_a_check_that_asserts_fails_with_what_it_says(said, told):
    def check(value):
        raise AssertionError(*said)

    trace = nbkit.opbisect(lambda: torch.ones(3).exp().sum(), check)
    assert trace.trials["passed"].tolist() == [False, False]
    assert trace.trials["message"].fillna("").tolist() == [told, told]


def test_a_step_that_is_not_the_same_each_time_is_told():
    answers = iter([False, True, False])  # nothing, all (of one call), confirm
    trace = nbkit.opbisect(lambda: torch.ones(2).exp(), lambda value: next(answers), ops="exp")
    assert "it does not do the same each time; name all that it changes in state=." in trace.meta["verdict"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 3}, "step must be a function, got 3; give one"),
        ({"check": None}, "check must be a function, got None"),
        ({"by": "fallbck"}, "by='fallbck' is not known; .*fallback"),
        ({"order": "size"}, "order='size' is not known"),
        ({"phases": "forwrd"}, "phases='forwrd' is not known"),
        ({"by": lambda calls: None}, r"by= returned a NoneType; it has to return a context manager"),
    ],
)
def test_bad_options_are_refused(options, message):
    given = {"step": lambda: torch.ones(2).exp(), "check": lambda value: False} | options
    with pytest.raises(nbkit.OptionError, match=message):
        nbkit.opbisect(given.pop("step"), given.pop("check"), **given)


def test_each_trial_begins_in_the_state_of_the_thread_with_the_same_numbers_of_own_generators():
    rng, seen = random.Random(1), []
    first = random.Random(1).random()

    def step():
        seen.append((torch.get_default_dtype(), torch.is_grad_enabled(), rng.random()))
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return torch.ones(2, 2, dtype=torch.float16) @ torch.ones(2, 2, dtype=torch.float16)

    trace = nbkit.opbisect(step, lambda out: False, by="cast")
    assert seen == [(torch.float32, True, first)] * 2
    assert (torch.get_default_dtype(), torch.is_grad_enabled(), rng.random()) == seen[0]
    assert trace.meta["verdict"].startswith("The step fails also with every half-precision op")


def test_what_no_trial_finds_as_it_was_is_said_first():
    batches = (torch.ones(2, 2, dtype=torch.float16) for _ in range(9))
    trace = nbkit.opbisect(lambda: next(batches) @ next(batches), lambda out: False, by="cast")
    assert trace.meta["verdict"].startswith(
        "Each trial is another run: the iterator `batches` could not be put back. The step fails also with"
    )
