"""The RWKV-4 sample model: its sizes and names, its two forms, what it learns and what it refuses."""

import re
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from sample_models.rwkv4 import RWKV4, RWKV4_LOG
from tests.sample_models.models import draw_ids, tiny

LOG = Path(__file__).parents[3] / "shared" / "data" / "oneflow_rwkv_graph_debug.log"


@pytest.fixture(scope="module")
def log_model():
    with torch.device("meta"):
        return RWKV4(RWKV4_LOG)


@pytest.fixture(scope="module")
def log_text():
    if not LOG.exists():
        pytest.skip("the OneFlow sample log is not beside the repository (../shared/data)")
    return LOG.read_text(encoding="utf-8", errors="replace")


def test_the_sizes_of_the_log_give_its_numbers(log_model):
    parameters = list(log_model.parameters())
    assert (len(parameters), sum(parameter.numel() for parameter in parameters)) == (116, 94_803_968)
    assert len(list(log_model.modules())) == 92
    assert [(name, tuple(buffer.shape)) for name, buffer in log_model.named_buffers()] == [("copy_mask", (1024, 1024))]


def test_first_block_has_the_names_of_the_log(log_model):
    names = [name for name, _ in log_model.blocks[0].named_modules()][1:]
    att = ["att", *(f"att.{part}" for part in ("time_shift", "key", "value", "receptance", "output"))]
    ffn = ["ffn", *(f"ffn.{part}" for part in ("time_shift", "key", "receptance", "value"))]
    assert names == ["ln1", "ln2", "ln0", *att, *ffn]
    assert not any("ln0" in name for name, _ in log_model.blocks[1:].named_modules())


def test_parameters_are_those_of_the_log(log_model, log_text):
    found = re.findall(r"\(PARAMETER:model\.([\w.]+):tensor\(.*?size=\(([\d, ]+)\)", log_text, flags=re.DOTALL)
    expected = {name: tuple(int(size) for size in re.findall(r"\d+", sizes)) for name, sizes in found}
    assert {name: tuple(parameter.shape) for name, parameter in log_model.named_parameters()} == expected


def test_modules_are_those_of_the_log(log_model, log_text):
    expected = set(re.findall(r"\(MODULE:model\.?([\w.]*):\w+\(", log_text))
    assert {name for name, _ in log_model.named_modules()} == expected


@pytest.mark.parametrize("head_qk", [0, 16])
def test_training_and_recurrent_form_agree(head_qk):
    model, ids = tiny("rwkv4", head_qk=head_qk), draw_ids(32)
    state, logits = None, []
    with torch.no_grad():
        for position in range(32):
            step, state = model.recurrent(ids[:, position], state)
            logits.append(step)
        assert_close(torch.stack(logits, dim=1), model(ids), rtol=1e-5, atol=1e-5)


def test_both_forms_have_the_same_gradients():
    model, ids = tiny("rwkv4"), draw_ids(8)
    model(ids)[:, -1].square().sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    state = None
    for position in range(8):
        logits, state = model.recurrent(ids[:, position], state)
    logits.square().sum().backward()
    for (name, parameter), gradient in zip(model.named_parameters(), expected, strict=True):
        assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def test_a_state_can_be_continued_twice():
    model, ids = tiny("rwkv4"), draw_ids(3)
    with torch.no_grad():
        _, state = model.recurrent(ids[:, 0])
        first, _ = model.recurrent(ids[:, 1], state)
        again, _ = model.recurrent(ids[:, 1], state)
    assert torch.equal(first, again)


def test_copy_head_adds_the_matches_to_the_ids_seen():
    model = tiny("rwkv4")
    ids = torch.tensor([[5, 9, 5]])
    x = torch.randn(1, 3, 32, generator=torch.Generator().manual_seed(2))
    match = (model.head_q(x) @ model.head_k(x).mT)[0] / 16
    expected = torch.zeros(3, 96)
    expected[0, 5], expected[1, 5], expected[1, 9] = match[0, 0], match[1, 0], match[1, 1]
    expected[2, 5], expected[2, 9] = match[2, 0] + match[2, 2], match[2, 1]
    assert_close(model.copy_logits(x, ids)[0], expected)


class ExpDtypes(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.exp.default:
            self.seen.add(args[0].dtype)
        return func(*args, **(kwargs or {}))


def test_wkv_of_a_bfloat16_model_is_summed_in_float32():
    model, ids = tiny("rwkv4").bfloat16(), draw_ids(4)
    with ExpDtypes() as mode:
        model(ids)
        _, state = model.recurrent(ids[:, 0])
    assert mode.seen == {torch.float32}
    assert state.layers[0].sums.dtype == torch.float32


def test_more_positions_than_the_copy_mask_holds_are_refused():
    with pytest.raises(ValueError, match="ids has 33 positions, but the copy head was built for 32; pass fewer"):
        tiny("rwkv4")(draw_ids(33))
    assert tiny("rwkv4", head_qk=0)(draw_ids(33)).shape == (2, 33, 96)
