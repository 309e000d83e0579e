"""A fault in one call shows first in the outputs of that call: nothing else of the step is touched before it."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from nbkit.simulated.call import tensors_in, written
from tests.capture.models import MODELS, raw
from tests.simulated.steps import OPTIMIZERS, loss_of


class Outputs(TorchDispatchMode):
    """Notes the name of every op with the bits of what it returned and wrote; none of memory that is only made."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        tensors = [] if "empty" in str(func) else [*tensors_in(out), *written(func, args, kwargs or {})]
        self.rows.append((str(func), [raw(getattr(tensor, "raw", tensor)) for tensor in tensors]))
        return out


def outputs_of(model_name, device, *faults):
    torch.manual_seed(7)
    model = MODELS[model_name]().to("sim")
    updates = OPTIMIZERS["adamw"](model.parameters())
    with Outputs() as outputs, device.planted(*faults):
        loss_of(model, model_name, "sim").backward()
        updates.step()
    return outputs.rows


@pytest.mark.parametrize(
    ("model", "op"),
    [
        ("llama", "aten.mm.default"),
        ("llama", "aten.rsqrt.default"),
        ("llama", "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"),
        ("llama", "aten.embedding_dense_backward.default"),
        ("rwkv4", "aten.native_layer_norm.default"),
        ("rwkv4", "aten.addcdiv_.default"),
        ("conv", "aten.convolution_backward.default"),
        ("conv", "aten.native_batch_norm.default"),
        ("gru", "aten.sigmoid_.default"),
    ],
)
def test_the_first_op_that_differs_is_the_faulty_one(device, model, op):
    clean = outputs_of(model, device)
    assert outputs_of(model, device) == clean
    spoilt = outputs_of(model, device, nbkit.Fault(op, size=0.1, nth_call=1))
    first = next(number for number, (left, right) in enumerate(zip(clean, spoilt, strict=True)) if left != right)
    assert spoilt[first][0] == op
    assert first == next(number for number, (name, _) in enumerate(clean) if name == op)
