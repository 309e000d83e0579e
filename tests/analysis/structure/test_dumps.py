"""recognise() on the sample dumps: their blocks, counts of ops in them, and what is forward, backward, optimizer."""

from functools import cache
from pathlib import Path

import pytest

from nbkit.analysis.structure.recognise import recognise
from nbkit.readers.oneflow.reader import read_oneflow_log
from nbkit.readers.paddle import read_paddle_program
from tests.analysis.structure.graphs import roles

DATA = Path(__file__).parents[4] / "shared" / "data"
SAMPLES = {
    "oneflow_rwkv_graph_debug.log": read_oneflow_log,
    "paddle_llama_pipeline_program.txt": read_paddle_program,
}
ONEFLOW, PADDLE = SAMPLES


@cache
def frames(name):
    if not (DATA / name).exists():
        pytest.skip(f"the sample {name} is not beside the repository (../shared/data)")
    return recognise(SAMPLES[name](DATA / name).frames)


def locations(name, graph):
    """Number of ops by the names of the parts that hold them, outermost first."""
    parts, nodes = frames(name)["parts"], frames(name)["nodes"]
    paths: list[str] = []
    for part, parent in zip(parts["name"], parts["parent_id"].fillna(-1).astype("int64"), strict=True):
        paths.append(part if parent < 0 else f"{paths[parent]}/{part}")
    ops = nodes[(nodes["kind"] == "op") & (nodes["graph"] == graph)]
    return ops["part_id"].map(dict(enumerate(paths))).value_counts().to_dict()


def below(counts, start):
    return sum(count for location, count in counts.items() if f"{location}/".startswith(f"{start}/"))


@pytest.mark.parametrize("graph", ["GraphBase_0 traced", "GraphBase_0 compiled"])
def test_the_rwkv_of_the_oneflow_log(graph):
    expected = {"block": 6, "time_mix": 6, "channel_mix": 6, "norm": 14, "embedding": 1, "head": 1}
    assert roles(frames(ONEFLOW), graph) == expected
    parts = frames(ONEFLOW)["parts"]
    blocks = parts[(parts["role"] == "block") & (parts["graph"] == graph) & (parts["phase"] == "forward")]
    assert blocks["number"].tolist() == list(range(6))


def test_ops_of_a_block_of_the_traced_graph():
    counts = locations(ONEFLOW, "GraphBase_0 traced")
    blocks = range(6)
    assert [below(counts, f"forward/model/blocks/{block}/att") for block in blocks] == [29] * 6
    assert [below(counts, f"forward/model/blocks/{block}/ffn") for block in blocks] == [21] * 6
    assert [below(counts, f"backward/model/blocks/{block}/att") for block in blocks] == [47, *[44] * 5]
    assert [below(counts, f"backward/model/blocks/{block}/ffn") for block in blocks] == [31] * 6


def test_roles_of_the_compiled_graph():
    nodes = frames(ONEFLOW)["nodes"]
    told = nodes.loc[nodes["graph"] == "GraphBase_0 compiled", "role"].value_counts()
    assert told[["cast", "communication", "optimizer"]].to_dict() == {"cast": 347, "communication": 8, "optimizer": 354}


def test_the_llama_of_the_paddle_program():
    expected = {"block": 2, "attention": 2, "mlp": 2, "norm": 5, "head": 1, "loss": 1}
    assert roles(frames(PADDLE)) == expected
    counts = locations(PADDLE, "block 0")
    assert [below(counts, f"forward/layer {layer}") for layer in (0, 1)] == [64, 64]
    assert [below(counts, f"recompute/layer {layer}") for layer in (0, 1)] == [63, 63]


def test_regions_of_the_paddle_program():
    counts = locations(PADDLE, "block 0")
    regions = ("forward", "recompute", "backward", "optimizer", "communication")
    assert {region: below(counts, region) for region in regions} == {
        "forward": 179,
        "recompute": 126,
        "backward": 159,
        "optimizer": 50,
        "communication": 44,
    }
    nodes = frames(PADDLE)["nodes"]
    assert (nodes["role"] == "communication").sum() == 44
