"""The sample dumps against the sample models at their sizes: every parameter, the blocks, the ops of a block."""

from functools import cache
from pathlib import Path

import pytest
import torch

import nbkit
from nbkit import Trace
from sample_models.llama import Llama, LlamaConfig
from sample_models.rwkv4 import RWKV4, RWKV4_LOG

DATA = Path(__file__).parents[3] / "shared/data"
ONEFLOW, PADDLE = DATA / "oneflow_rwkv_graph_debug.log", DATA / "paddle_llama_pipeline_program.txt"
needs_data = pytest.mark.skipif(not (ONEFLOW.is_file() and PADDLE.is_file()), reason="the sample dumps are not here")
# What the log computes in one op or other ones: WKV, 1 - x in two ops, casts between placements, the mean of the loss.
ELSEWHERE = {"wkv", "scalar_add", "hierarchical_parallel_cast", "log_softmax", "reduce_sum", "broadcast_div", "reshape"}


@cache
def log() -> Trace:
    return nbkit.load(ONEFLOW)


@cache
def rwkv() -> Trace:
    """The sample model at the log's sizes, exported without values, against the log; the texts are shorter."""
    with torch.device("meta"):
        model, ids = RWKV4(RWKV4_LOG), torch.zeros(8, 16, dtype=torch.long)
    return nbkit.opgraph(torch.export.export(model, (ids, ids)), against=log())


@cache
def llama() -> Trace:
    """Two layers of LLaMA 7B, exported without values, against the last stage of a pipeline."""
    with torch.device("meta"):
        model, ids = Llama(LlamaConfig(num_hidden_layers=2)), torch.zeros(8, 2048, dtype=torch.long)
    return nbkit.opgraph(torch.export.export(model, (ids, ids)), against=PADDLE)


@needs_data
def test_all_116_parameters_and_the_mask_of_the_log_are_those_of_the_model():
    rows = rwkv().correspondence.query("level == 'parameter' and action == 'match'")
    assert len(rows) == 117
    assert [name for name in rows["left_name"] if name.endswith("mask")] == ["copy_mask"]
    assert (rows["right_name"] == "model." + rows["left_name"]).all()
    assert (rows["left_shape"] == rows["right_shape"]).all()
    assert set(rows["evidence"]) == {"name"} and set(rows["relation"]) == {"same"}


@needs_data
def test_every_module_of_the_model_is_in_the_log():
    parts = rwkv().correspondence.query("level == 'part'")
    matched = parts.query("action == 'match'")
    assert "left_only" not in set(parts["action"])
    roles = matched["role"].value_counts()
    assert (roles["time_mix"], roles["channel_mix"], roles["block"], roles["norm"]) == (6, 6, 6, 14)
    assert (matched["right_name"].iloc[1:] == "model." + matched["left_name"].iloc[1:]).all()


@needs_data
def test_the_forward_ops_of_the_log_are_found_in_the_model():
    rows = rwkv().correspondence.query("level == 'op' and phase == 'forward' and right_op.notna()")
    missed = rows.query("action == 'right_only'")["right_op"].value_counts()
    assert set(missed.index) <= ELSEWHERE | {"transpose"}
    block = rows[rows["right_name"].str.startswith("model.blocks.3.ffn") & (rows["action"] == "match")]
    assert block["right_op"].value_counts().to_dict() == {
        "broadcast_mul": 5, "broadcast_matmul": 3, "add_n": 2, "scalar_mul": 2, "pad": 1, "relu": 1, "square": 1,
        "sigmoid_v2": 1,
    }  # fmt: skip


@needs_data
def test_what_the_compiler_kept_pruned_and_added():
    traced, compiled = (nbkit.opgraph(log(), graph=f"GraphBase_0 {name}") for name in ("traced", "compiled"))
    rows = nbkit.opgraph(traced, against=compiled).correspondence.query("level != 'part'")
    assert rows["action"].value_counts().to_dict() == {"match": 914, "right_only": 708, "left_only": 105}
    pruned = rows.query("action == 'left_only'")["left_op"].value_counts().to_dict()
    assert pruned == {"hierarchical_parallel_cast": 44, "add_n": 32, "constant": 28}  # and the mask, which is no op
    casts = rows.query("action == 'right_only' and relation == 'cast'")["right_name"].str.extract("-(cast_.*)$")[0]
    assert casts.value_counts().to_dict() == {"cast_f2h": 187, "cast_h2f": 159}


@needs_data
def test_all_20_parameters_of_the_pipeline_stage_are_those_of_two_layers():
    rows = llama().correspondence.query("level == 'parameter'")
    matched = rows.query("action == 'match'")
    assert rows.query("action == 'left_only'")["left_name"].tolist() == ["model.embed_tokens.weight"]
    assert matched["relation"].value_counts().to_dict() == {"permute": 15, "cast": 5}
    names = matched["right_name"].str.extract(r"_(\d+)\.w_0")[0]
    attention = matched["left_name"].str.contains("layers.1.self_attn")
    assert names[attention].tolist() == ["21", "22", "23", "24"]


@needs_data
def test_the_layers_of_the_pipeline_stage_are_those_of_the_model():
    rows = llama().correspondence.query("level == 'part' and action == 'match'").dropna(subset="role")
    assert rows["role"].value_counts().to_dict() == {"norm": 5, "block": 2, "attention": 2, "mlp": 2, "head": 1}
    assert rows.query("role == 'block'")["right_name"].tolist() == ["layer 0", "layer 1"]
    ops = llama().correspondence.query("level == 'op' and action == 'match' and role == 'mlp'")
    assert ops["right_op"].tolist() == ["matmul_v2", "silu", "matmul_v2", "elementwise_mul", "matmul_v2"] * 2
