"""The table of ViT-B/16 is the published one of the Colossal-AI Analyzer, and nbkit's own, to the byte and the FLOP."""

import json
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch.autograd.profiler_util import _format_memory

import nbkit
from sample_models.vit import VIT_B_16, ViT

ROWS = Path(__file__).parents[5] / "shared/data/vit_b16_symbolic_rows.json"
OPTIONS = {
    "storage_default": {},
    "storage_math": {"attention": "math"},
    "view_math": {"convention": "analyzer", "layer_norm": "contiguous"},
    "reference": {"convention": "analyzer"},
}
SIZES = ("accumulate", "incremental", "output", "temp", "param", "backward")
COLUMNS = {
    "op": "op_kind",
    "name": "name",
    **{name: f"{name}_bytes" for name in SIZES},
    "fwd": "forward_flops",
    "bwd": "backward_flops",
}
TOKENS = 8 * 197 * 768 * 4  # bytes of what a layer gives to the next


@cache
def model():
    with torch.device("meta"):
        made = ViT(VIT_B_16)
    return made.to_empty(device="cpu")


@cache
def table(key):
    return nbkit.cost_table(model(), torch.empty(8, 3, 224, 224), **OPTIONS[key])


def row(key, name):
    (found,) = table(key)[table(key)["name"] == name].to_dict("records")
    return found


@pytest.mark.skipif(not ROWS.is_file(), reason="the rows of the published table are not here")
@pytest.mark.parametrize("key", OPTIONS)
def test_all_rows_are_those_of_the_published_table(key):
    expected = pd.DataFrame(json.loads(ROWS.read_text())[key]).rename(columns=COLUMNS)
    found = table(key)[[*COLUMNS.values()]]
    pd.testing.assert_frame_equal(found, expected[[*COLUMNS.values()]], check_dtype=False)
    assert len(found) == 170


@pytest.mark.parametrize(
    ("key", "accumulate", "forward", "backward"),
    [
        ("reference", 1_118_392_640, 140_841_056_256, 280_511_502_272),
        ("view_math", 1_118_392_640, 140_822_900_736, 280_511_502_272),
        ("storage_math", 1_239_404_864, 281_021_251_584, 560_192_815_104),
        ("storage_default", 945_285_440, 281_021_251_584, 565_915_435_008),
    ],
)
def test_totals(key, accumulate, forward, backward):
    found = table(key)
    assert found["accumulate_bytes"].iloc[-1] == accumulate
    assert found["accumulate_bytes"].iloc[0] + found["incremental_bytes"].sum() == accumulate
    assert (found["forward_flops"].sum(), found["backward_flops"].sum()) == (forward, backward)
    assert (found["param_bytes"].sum(), found["backward_bytes"].sum()) == (346_270_624, 1_428_217_088)
    assert found["op_kind"].value_counts().to_dict() == {
        "call_module": 112,
        "call_function": 51,
        "call_method": 3,
        "get_attr": 2,
        "placeholder": 1,
        "output": 1,
    }


@pytest.mark.parametrize(
    ("key", "layer", "saved"),
    [
        ("reference", 0, 5 * TOKENS + 14_902_656),
        ("reference", 1, 4 * TOKENS + 14_902_656),
        ("view_math", 1, 5 * TOKENS + 14_902_656),
        ("storage_math", 1, 7 * TOKENS + 14_902_656),
        ("storage_default", 1, 5 * TOKENS + 75_648),
    ],
)
def test_what_attention_saves(key, layer, saved):
    """q, k, v and what goes in and out of the products; softmax, or the logarithm of its sum where torch fuses it."""
    assert row(key, f"encoder_layers_encoder_layer_{layer}_self_attention")["incremental_bytes"] == saved


def test_the_projection_of_patches_needs_no_gradient_of_the_image():
    products = 8 * 14 * 14 * 768 * 3 * 16 * 16
    x = torch.empty(8, 3, 224, 224, requires_grad=True)
    with_gradient = nbkit.cost_table(model(), x, convention="analyzer").set_index("name").loc["conv_proj"]
    assert row("reference", "conv_proj")["backward_flops"] == products == 924_844_032
    assert with_gradient["backward_flops"] == 2 * products == 2 * with_gradient["forward_flops"]


def test_the_view_that_was_saved_last_counts_less_than_its_memory():
    found = nbkit.cost_table(model(), torch.empty(8, 3, 224, 224), sizing="view")
    assert found["accumulate_bytes"].iloc[-1] == 824_273_216


def test_the_norms_laid_out_as_their_inputs_are_all_that_differs():
    laid_out, contiguous = table("reference"), table("view_math")
    assert (laid_out["forward_flops"] != contiguous["forward_flops"]).sum() == 23
    assert (laid_out["accumulate_bytes"] != contiguous["accumulate_bytes"]).sum() == 23
    assert (laid_out["incremental_bytes"] != contiguous["incremental_bytes"]).sum() == 46
    same = ["param_bytes", "backward_bytes", "backward_flops", "name"]
    pd.testing.assert_frame_equal(laid_out[same], contiguous[same])


def test_the_text_has_the_strings_that_the_analyzer_prints():
    lines = nbkit.cost_table_text(table("reference")).splitlines()
    assert lines[0] == "ViT: 170 nodes, convention analyzer"
    assert lines[1].startswith("FLOPs: multiply-adds, and one for each element")
    cells = [" ".join(line.split()) for line in lines[6:]]
    assert len(cells) == 170
    layer = "call_module encoder_layers_encoder_layer_0"
    assert f"{layer}_self_attention 46.52 MiB 37.30 MiB 0 B 4.62 MiB 9.01 MiB 13.85 MiB 4.20 G 8.40 G" in cells
    assert f"{layer}_ln_1 9.22 MiB 12.31 KiB 0 B 4.62 MiB 6.00 KiB 4.62 MiB 6.05 M 6.05 M" in cells
    assert "call_method expand 4.59 MiB 0 B 0 B 24.00 KiB 3.00 KiB 0 B 0 6.14 k" in cells
    assert "call_function add 9.21 MiB 4.62 MiB 4.62 MiB 0 B 591.00 KiB 4.62 MiB 1.21 M 1.21 M" in cells
    for line, (_, node) in zip(cells, table("reference").iterrows(), strict=True):
        sizes = [_format_memory(node[f"{name}_bytes"]) for name in SIZES]
        assert " ".join(size.replace("MB", "MiB").replace("KB", "KiB").replace("GB", "GiB") for size in sizes) in line
