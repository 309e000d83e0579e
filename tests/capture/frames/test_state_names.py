"""`tensors.state_name`: gradients of parameters, and what optimizers keep of them, by the parameter's path."""

import pytest
import torch

import nbkit


def made():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.GELU(), torch.nn.Linear(3, 2))


def stepped(model, optimizer, steps=1, clears=False):
    x = torch.randn(5, 4)
    with nbkit.optrace() as trace:
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
        if clears:
            optimizer.zero_grad()
    return trace


PATHS = ["0.weight", "0.bias", "2.weight", "2.bias"]


def states(trace, op=None):
    tensors = trace.tensors
    if op is not None:
        tensors = tensors[tensors["op_id"].isin(trace.ops["op_id"][trace.ops["op"] == op])]
    return tensors["state_name"].dropna()


def test_an_op_of_the_optimizer_names_gradient_and_state():
    model = made()
    trace = stepped(model, torch.optim.AdamW(model.parameters(), foreach=False))
    of_ops = trace.tensors[trace.tensors["role"] == "input"].groupby("op_id")
    called = trace.ops.index[trace.ops["op"] == "aten.addcdiv_.default"]
    read = [of_ops.get_group(op_id)[["name", "state_name"]].values.tolist() for op_id in called]
    assert [(row[0][0], row[1][1]) for row in read] == [(path, f"{path}.exp_avg") for path in PATHS]
    squared = {f"{path}.{state}" for path in PATHS for state in ("grad", "exp_avg_sq")}
    assert set(states(trace, "aten.addcmul_.default")) == squared
    assert set(states(trace)) == squared | {f"{path}.{state}" for path in PATHS for state in ("exp_avg", "step")}


def test_names_and_state_names_are_of_different_tensors():
    model = made()
    tensors = stepped(model, torch.optim.SGD(model.parameters(), momentum=0.9), steps=3).tensors
    assert not (tensors["name"].notna() & tensors["state_name"].notna()).any()
    assert set(tensors["state_name"].dropna()) == {
        f"{path}.{of}" for path in PATHS for of in ("grad", "momentum_buffer")
    }


def test_a_gradient_is_named_where_the_backward_pass_makes_it():
    model = made()
    trace = stepped(model, torch.optim.SGD(model.parameters()))
    made_by = trace.tensors[trace.tensors["role"] == "output"].dropna(subset=["state_name"])
    phases = trace.ops["phase"].iloc[made_by["op_id"]]
    assert set(made_by["state_name"]) == {f"{path}.grad" for path in PATHS}
    assert set(phases) == {"backward"}


@pytest.mark.parametrize("clears", [False, True])
def test_cleared_gradients_have_no_name(clears):
    model = made()
    trace = stepped(model, torch.optim.SGD(model.parameters()), clears=clears)
    assert (len(states(trace)) == 0) is clears


def test_tied_weights_and_models_that_have_not_run():
    model, other = made(), made()
    model[0].tied = model[0].weight
    optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()])
    trace = stepped(model, optimizer)
    assert set(states(trace)) == {f"{path}.grad" for path in PATHS}


def test_a_recording_holds_no_optimizer():
    import gc
    import weakref

    model = made()
    optimizer = torch.optim.SGD(model.parameters())
    trace = stepped(model, optimizer)
    held = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert held() is None and len(trace.ops)
