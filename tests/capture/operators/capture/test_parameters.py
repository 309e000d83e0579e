"""Parameters that a folder names in place of their values: what is saved, and what replay makes of a model."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.trace.calls.reading import CallFolder


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(50, 32), nn.BatchNorm1d(32)
        self.hidden, self.head = nn.Linear(32, 128), nn.Linear(128, 50, bias=False)
        self.out = nn.Linear(32, 50, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, ids):
        x = self.norm(self.embedding(ids))
        return self.head(F.gelu(self.hidden(x))) + self.out(x)


def made():
    torch.manual_seed(0)
    model, ids, target = Tied(), torch.randint(50, (8,)), torch.randint(50, (8,))
    return model, lambda: F.cross_entropy(model(ids), target)


def values_of(model):
    """Bytes of the values of parameters that are large enough to be told from other contents."""
    return {p.detach().contiguous().view(torch.uint8).numpy().tobytes() for p in model.parameters() if p.numel() > 200}


def stored(folder):
    opened = CallFolder(folder)
    return {opened.content(name).tobytes() for name in opened._contents}


@pytest.fixture
def captured(tmp_path):
    model, loss = made()
    with nbkit.opcapture(tmp_path / "named", parameters=model) as trace:
        loss().backward()
    return tmp_path / "named", model, trace


def test_their_values_are_not_in_the_folder(captured, tmp_path):
    folder, model, trace = captured
    assert values_of(model) and not values_of(model) & stored(folder)
    again, loss = made()
    with nbkit.opcapture(tmp_path / "saved") as whole:
        loss().backward()
    assert values_of(again) <= stored(tmp_path / "saved")
    assert whole.meta["captured_calls"] == trace.meta["captured_calls"]
    unique = sum(p.nbytes for p in model.parameters())
    assert whole.meta["captured_bytes"] - trace.meta["captured_bytes"] == pytest.approx(unique, rel=0.1)


@pytest.mark.parametrize("form", ["model", "state_dict", "copy"])
def test_replay_takes_them_from_the_model(captured, form):
    folder, model, trace = captured
    fresh, _ = made()
    given = {"model": model, "state_dict": model.state_dict(), "copy": fresh}[form]
    replayed = nbkit.opreplay(folder, parameters=given)
    assert replayed.meta["identical_calls"] == trace.meta["captured_calls"] > 40


def test_a_state_dict_is_captured_and_replay_takes_the_model(tmp_path):
    model, loss = made()
    model.eval()
    with nbkit.opcapture(tmp_path / "calls", parameters=model.state_dict()) as trace:
        loss()
    names = {entry.get("before", "") for _, record in CallFolder(tmp_path / "calls") for entry in record["storages"]}
    assert any(name.endswith(":norm.running_mean") for name in names)
    replayed = nbkit.opreplay(tmp_path / "calls", parameters=model)
    assert replayed.meta["identical_calls"] == trace.meta["captured_calls"] > 5


def test_what_an_op_wrote_to_is_saved(tmp_path):
    model, loss = made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbkit.opcapture(tmp_path / "calls", parameters=model, ops="addmm,mm,embedding"):
        for _ in range(2):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    fresh, _ = made()
    replayed = nbkit.opreplay(tmp_path / "calls", parameters=fresh)
    assert replayed.meta["identical_calls"] == replayed.meta["captured_calls"] > 10
    assert replayed.meta["unusable_calls"] == 0


def test_without_the_model_or_with_another_one_a_sentence_says_what_to_give(captured):
    folder, model, _ = captured
    alone = nbkit.opreplay(folder)
    assert any("is not in the folder; give parameters=model" in reason for reason in alone.meta["skipped"])
    assert alone.meta["identical_calls"] > 0 and alone.meta["mismatches"] == 0
    with torch.no_grad():
        model.hidden.weight.add_(1)
    other = nbkit.opreplay(folder, parameters=model)
    assert any("its parameter 'hidden.weight' is not what it was" in reason for reason in other.meta["skipped"])


def test_parameters_without_memory_are_passed_over(tmp_path):
    model, x = nn.Sequential(nn.Linear(3, 200), nn.Linear(3, 100)), torch.ones(2, 3)
    model[0].to("meta")
    with nbkit.opcapture(tmp_path / "calls", parameters=model, ops="addmm"):
        model[1](x)
    assert model[1].weight.detach().numpy().tobytes() not in stored(tmp_path / "calls")
    assert nbkit.opreplay(tmp_path / "calls", parameters=model).meta["identical_calls"] == 1


@pytest.mark.parametrize("parameters", [3, "model", [torch.ones(2)], {"a": 3}])
def test_what_is_no_model_is_refused_before_the_step(tmp_path, parameters):
    with pytest.raises(nbkit.OptionError, match="takes a model or its state_dict"):
        nbkit.opcapture(tmp_path / "calls", parameters=parameters)
    assert not (tmp_path / "calls").exists()
