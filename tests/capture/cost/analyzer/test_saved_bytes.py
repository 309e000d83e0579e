"""What the table and opcost say is saved for the backward pass is what a real forward pass of ViT saves."""

import gc
import warnings
import weakref

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import nbkit
from sample_models.vit import VIT_B_16, VIT_TINY, ViT

# storage, view, storages, FLOPs of the backward pass
TINY = {"math": (305_552, 262_544, 35, 10_296_320), "default": (253_328, 210_320, 31, 10_444_288)}


def tiny():
    torch.manual_seed(0)
    return ViT(VIT_TINY), torch.randn(2, 3, 32, 32)


def backend(attention):
    return sdpa_kernel(SDPBackend.MATH if attention == "math" else [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])


def saved_for_real(model, x):
    """The tensors that autograd saves last in each memory, parameters left out."""
    own = {parameter.data_ptr() for parameter in model.parameters()}
    held = {}

    def pack(tensor):
        held[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(x)
    assert out.requires_grad
    return [tensor for pointer, tensor in held.items() if pointer not in own]


@pytest.mark.parametrize("attention", TINY)
def test_the_table_says_what_a_real_pass_saves(attention):
    model, x = tiny()
    storage, view, count, backward = TINY[attention]
    with backend(attention):
        saved = saved_for_real(model, x)
    assert sum(tensor.untyped_storage().nbytes() for tensor in saved) == storage
    assert sum(tensor.nbytes for tensor in saved) == view
    assert len(saved) == count
    for sizing, expected in (("storage", storage), ("view", view)):
        table = nbkit.cost_table(model, x, attention=attention, sizing=sizing)
        assert table["accumulate_bytes"].iloc[-1] == expected
    assert (table["forward_flops"].sum(), table["backward_flops"].sum()) == (5_541_376, backward)


@pytest.mark.parametrize("attention", TINY)
def test_activations_after_the_forward_pass_are_those_of_the_memory_tracker(attention):
    """The tracker counts no input of the step, and the result, which nothing saves: 2 x 10 floats."""
    tracker = pytest.importorskip("torch.distributed._tools.mem_tracker").MemTracker()
    model, x = tiny()
    tracker.track_external(model)
    with warnings.catch_warnings(), tracker, backend(attention):
        warnings.simplefilter("ignore")
        out = model(x)
        (now,) = tracker.get_tracker_snapshot("current").values()
    assert out.nbytes == 80
    sizes = {getattr(kind, "value", kind): size for kind, size in now.items()}
    assert sizes["Activation"] == TINY[attention][0] - x.nbytes + out.nbytes


def big():
    with torch.device("meta"):
        model = ViT(VIT_B_16)
    return model.to_empty(device="cpu"), torch.empty(8, 3, 224, 224)


BY_PRODUCER = {
    "math": {
        "aten.clone.default": (290_488_320, 36),
        "aten.addmm.default": (232_390_656, 12),
        "aten.gelu.default": (232_390_656, 12),
        "aten._safe_softmax.default": (178_831_872, 12),
        "aten.add.Tensor": (121_036_800, 25),
        "aten.mul.Scalar": (116_195_328, 24),
        "aten.native_layer_norm.default": (63_254_336, 63),
        "input": (4_816_896, 1),
    },
    "default": {
        "aten.clone.default": (232_390_656, 24),
        "aten.addmm.default": (232_390_656, 12),
        "aten.gelu.default": (232_390_656, 12),
        "aten.add.Tensor": (121_036_800, 25),
        "aten.native_layer_norm.default": (63_254_336, 63),
        "aten._scaled_dot_product_flash_attention_for_cpu.default": (59_005_440, 24),
        "input": (4_816_896, 1),
    },
}


@pytest.mark.parametrize("attention", BY_PRODUCER)
def test_bytes_by_the_op_that_made_them(attention):
    model, x = big()
    with backend(attention):
        saved = nbkit.opcost().run(lambda: model(x)).saved
    new = saved[saved["new_bytes"] > 0]
    sums = new["new_bytes"].groupby(new["producer_op"].fillna("input")).agg(["sum", "count"])
    found = dict(zip(sums.index, map(tuple, sums.to_numpy().tolist()), strict=True))
    assert found == BY_PRODUCER[attention]
    first = new["saver_module"].str.removeprefix("encoder.layers.encoder_layer_0.")
    by_saver = new["new_bytes"].groupby(first).sum()
    tokens = 8 * 197 * 768 * 4
    own = 48_792_960 if attention == "math" else 24_283_008
    parts = {"ln_1": tokens + 12_608, "self_attention": own, "ln_2": tokens + 12_608}
    parts |= {"mlp.0": tokens, "mlp.1": 4 * tokens, "mlp.3": 4 * tokens}
    assert by_saver[[*parts]].to_dict() == parts


def test_autocast_saves_copies_of_parameters():
    model, x = big()

    def step():
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    trace = nbkit.opcost().run(step)
    new = trace.saved[trace.saved["new_bytes"] > 0]
    inputs = trace.tensors[(trace.tensors["role"] == "input") & trace.tensors["name"].notna()]
    is_copy = (new["producer_op"] == "aten._to_copy.default") & new["producer_op_id"].isin(inputs["op_id"])
    assert new["new_bytes"].sum() == 703_949_120
    assert new.loc[is_copy, "new_bytes"].sum() == 172_584_960


def test_the_result_of_a_step_is_freed_when_it_is_deleted():
    x = torch.ones(8, requires_grad=True)
    gc.disable()
    try:
        with nbkit.opcost() as trace:
            y = x.exp()
            memory = weakref.ref(y.untyped_storage())
            del y
            assert memory() is None
    finally:
        gc.enable()
    (made,) = trace.storages[trace.storages["op"] == "aten.exp.default"].itertuples()
    assert made.kind == "activation" and made.freed_op_id == made.op_id
