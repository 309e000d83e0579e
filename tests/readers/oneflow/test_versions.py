"""Tests spellings of other versions of OneFlow, from 0.5 to 1.0, and of other levels of debugging."""

import pytest

from nbkit.readers.oneflow.rows.traced import source_of
from nbkit.readers.oneflow.text.facts import Facts
from nbkit.readers.oneflow.text.memory import Memory
from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import attributes, nodes_of

WHOLE = logs.text([*logs.built(), logs.listing()])


def test_placement_behind_a_colon(tmp_path):
    old = WHOLE.replace("), placement=(oneflow", "):placement=(oneflow").replace("dim=0", "axis=0")
    trace = logs.read(tmp_path, old)
    assert logs.same(logs.read(tmp_path, WHOLE), trace) == {}


def test_first_drafts_print_names_alone(tmp_path):
    lines = ["(OPERATOR:a.b-matmul-0(a.w/out, x/out_0) -> (a.b-matmul-0/out_0))", "(OPERATOR:a.b-relu-1(...) -> (...))"]
    trace = logs.read(tmp_path, "\n".join(lines))
    assert trace.nodes["name"].tolist() == ["a.b-matmul-0", "a.b-relu-1"]
    assert trace.nodes["module"].tolist() == ["a.b", "a.b"]
    assert trace.edges["tensor"].tolist() == ["a.w/out", "x/out_0"]
    assert trace.graph_tensors["tensor"].tolist() == ["a.b-matmul-0/out_0"]


def test_ops_without_a_listing_around_them(tmp_path):
    ops = [line for line in logs.listing() if "OPERATOR" in line]
    trace = logs.read(tmp_path, "\n".join(ops))
    assert trace.nodes["graph"].unique().tolist() == ["graph compiled"]
    found = dict(zip(trace.nodes["name"], trace.nodes["phase"], strict=True))
    assert (found["model.fc-matmul-0"], found["model.fc-add_n-3"]) == ("forward", "backward")
    assert found["model.fc.weight_optimizer"] == "optimizer"
    assert trace.nodes.set_index("name").loc["model.fc-matmul-0", "module"] == "model.fc"


def test_ops_that_are_added_without_a_try(tmp_path):
    names = ["_Net_0_input.0.0_x", "model.fc.weight", "model.fc-matmul-0", "model.fc-FreeEagerTensor-1"]
    lines = [logs.added(name) for name in names[:3]] + [[*logs.added(names[3])[:1], f"{names[3]} for FreeEagerTensor."]]
    trace = logs.read(tmp_path, logs.text(lines))
    assert trace.nodes["name"].tolist() == names
    assert trace.nodes["kind"].tolist() == ["input", "parameter", "op", "constant"]
    assert trace.nodes["op"].iloc[2] == "matmul"


def test_first_versions_print_the_whole_op_again(tmp_path):
    twice = [[*record[:-1], *record[1:-3], ""] for record in logs.traced()]
    once = logs.read(tmp_path, logs.text(logs.traced()))
    assert logs.same(once, logs.read(tmp_path, logs.text(twice)), but=["line"]) == {}


@pytest.mark.parametrize("words", ["add op: ", "add op : "])
def test_op_that_the_framework_adds_itself(tmp_path, words):
    head = logs.glog(f"Lazy nn.Graph name Net_0 {words}")
    tick = ['name: "System-Tick-1"', "device_tick_conf {", '  tick: "a/out"', '  out: "out"', "}", ""]
    trace = logs.read(tmp_path, logs.text([[head, *tick]]))
    assert trace.nodes[["kind", "op", "name"]].to_numpy().tolist() == [["op", "device_tick", "System-Tick-1"]]
    assert (trace.edges["slot"].tolist(), trace.graph_tensors["tensor"].tolist()) == (["tick"], ["System-Tick-1/out"])


def test_variable_that_does_not_train(tmp_path):
    weight = logs.op("model.fc.weight", logs.variable(2, 4, extra=["  trainable: false"]))
    parts = logs.built()
    trace = logs.read(tmp_path, logs.text([*parts[:2], weight, *parts[2:]]))
    assert trace.modules[["params", "trainable_params"]].to_numpy().tolist() == [[8, 0], [8, 0]]


def test_module_with_settings_around_its_operators(tmp_path):
    lines = logs.listing()
    first = next(at for at, line in enumerate(lines) if "OPERATOR" in line)
    last = next(at for at, line in enumerate(lines) if "_optimizer" in line)
    settings = "(GraphModule:model.fc(stage_id=0, activation_checkpointing=True, )): ("
    nested = [*lines[:first], settings, *lines[first : last + 1], ")", *lines[last + 1 :]]
    whole = logs.read(tmp_path, "\n".join(lines))
    trace = logs.read(tmp_path, "\n".join(nested))
    assert logs.same(whole, trace, but=["line"]) == {}


@pytest.mark.parametrize(("settings_of", "module"), [("model.fc", "model.fc"), ("model.other", "model")])
def test_settings_beside_a_module_name_the_one_of_their_operators(tmp_path, settings_of, module):
    lines = logs.listing()
    first = next(at for at, line in enumerate(lines) if "OPERATOR" in line)
    last = next(at for at, line in enumerate(lines) if "_optimizer" in line)
    settings = ["    )", f"(GraphModule:{settings_of}(stage_id=0, )): ("]  # the first bracket closes model.fc
    beside = [*lines[:first], *settings, *lines[first : last + 1], *lines[last + 1 :]]
    trace = logs.read(tmp_path, "\n".join(beside))
    below = trace.nodes[trace.nodes["name"] == "model.fc.weight_optimizer"]
    assert below["module"].tolist() == [module] and trace.meta["skipped_lines"] == []


def test_level_3_says_shapes(tmp_path):
    body = ['input_bns: "in_0"', 'output_bns: "out_0"', "op_conf {", '  name: "reduce_sum-1"', "}", "arg_signature {"]
    for key, of in (("in_0", "model.fc-matmul-0"), ("out_0", "reduce_sum-1")):
        body += ["  bn_in_op2lbi {", f'    key: "{key}"', "    value {", f'      op_name: "{of}"']
        body += ['      blob_name: "out_0"', "    }", "  }"]
    body += ["}", "logical_blob_desc_signature {", "  bn_in_op2blob_desc {", '    key: "out_0"', "    value {"]
    body += ["      shape {", "        dim: 1", "      }", "      data_type: kBFloat16", "    }", "  }", "}"]
    body += ["nd_sbp_signature {", "  bn_in_op2nd_sbp {", '    key: "out_0"', "    value {", "      sbp_parallel {"]
    body += ["        partial_sum_parallel {", "        }", "      }", "    }", "  }", "}", ""]
    ops = logs.traced()
    ops[3] = [*ops[3][:-2], logs.glog("Lazy nn.Graph name Net_0 infer and and op attr : "), *body, *ops[3][-2:]]
    row = nodes_of(logs.read(tmp_path, logs.text(ops)), "Net_0 traced").iloc[3]
    assert (row["name"], row["dtype"], row["shape"]) == ("reduce_sum-1", "bfloat16", "[1]")


def test_location_in_the_listing(tmp_path):
    loc = 'File "/me/net.py", line 11, in forward, source < return f(x, ")") >; ... 1 more'
    line = f"{logs.operator('a-relu-0', ['x/out|2'], ['a-relu-0/out_0|2'])[:-1]}, location=({loc}))"
    trace = logs.read(tmp_path, line)
    assert (trace.nodes["source"].tolist(), trace.nodes["device"].tolist()) == (["/me/net.py:11"], ["cuda [0, 1]"])
    assert attributes(trace.nodes)[0]["location"] == loc


@pytest.mark.parametrize(
    ("loc", "source"),
    [
        (
            "Python Stack[-2]: 'a' at '/a.py': line 1; Python Stack[-1]: 'b' at '/b.py': line 22;  ... 7 more",
            "/b.py:22",
        ),
        (
            "Python Stack[-2]: <frame at 0x7f, file '/a.py', line 1, code f>; "
            "Python Stack[-1]: <frame at 0x7e, file '/b.py', line 2, code g>;  ... 10 more; ",
            "/b.py:2",
        ),
        ('File "/b.py", line 3, in g, source < x[(1] >; File "/a.py", line 1, in f, source < g() >;', "/b.py:3"),
        ("", None),
        (None, None),
        ("somewhere", None),
    ],
)
def test_source_lines(loc, source):
    assert source_of(loc) == source


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            " Graph name G in Rank: -1, Device: -1 needs to allocate [ -1e-06 MiB ] device memory. ",
            {"graph": "G", "rank": -1, "device": -1, "total_mb": -1e-06},
        ),
        (
            "Graph name G needs to allocate [ 2 MiB ] device memory in Rank: 0 , Device: 1.",
            {"graph": "G", "rank": 0, "device": 1, "total_mb": 2},
        ),
        (
            "Plan: G needs to allocate [ 12.5 MiB ] device memory in Rank: 1 , Device: 0",
            {"graph": "G", "rank": 1, "device": 0, "total_mb": 12.5},
        ),
    ],
)
def test_memory_of_plans(line, found):
    memory = Memory()
    assert memory.line(line)
    assert memory.plans == [found]


def test_parts_of_memory_belong_to_the_plan_above():
    part = "   In general, Chunk id: 1  memory is [ 10 MiB ] with mem_block_num = 3"
    memory = Memory()
    assert memory.line(part) is False
    assert memory.line("Plan: G needs to allocate [ 12.5 MiB ] device memory in Rank: 1 , Device: 0")
    assert memory.line(part) is True
    assert memory.plans == [
        {"graph": "G", "rank": 1, "device": 0, "total_mb": 12.5, "chunk_mb": 10, "chunk_count": 3},
    ]


def test_tensors_in_memory_at_level_3(tmp_path):
    first = "In Chunk id: 1, MemBlock id: 205 Order: 0 ,duration: 12 ,size: 33.5544 MiB, name: a-mul-1/z_0"
    second = "In Device: 0 Memblock id: 7 EagerVariable  size: 4.1943 MiB, name: model.w/out"
    below = ["shape: (8,1024,1024) ,dtype: kFloat ,alloc_order: 3 ,free_order: 14", "shape: (1024) ,dtype: kFloat"]
    lines = [logs.glog(first), below[0], logs.glog(second), below[1]]
    assert logs.read(tmp_path, "\n".join(lines)).meta["oneflow"]["memory_tensors"] == [
        {"tensor": "a-mul-1/z_0", "mb": 33.5544, "kind": "chunk", "chunk": 1, "block": 205, "order": 0, "duration": 12}
        | {"shape": [8, 1024, 1024], "dtype": "float32"},
        {"tensor": "model.w/out", "mb": 4.1943, "kind": "EagerVariable", "device": 0, "block": 7}
        | {"shape": [1024], "dtype": "float32"},
    ]


def test_passes_that_are_timed_in_milliseconds():
    facts = Facts()
    assert facts.pass_line("Graph name: G AutoMixedPrecision time elapsed: 120 milliseconds", None)
    assert facts.passes == [{"graph": "G", "number": None, "name": "AutoMixedPrecision", "seconds": 0.12}]


def test_stages_of_other_versions(tmp_path):
    lines = [
        "(GRAPH:Net_0:Net)'s total time to build graph and plan : 3.5s.",
        "(GRAPH:Net_0:Net) building a shared graph and plan Done! Cost time: 0.25s.",
        "(GRAPH:Net_0:Net) end re-building graph outputs for optimizatioin.",
    ]
    found = logs.read(tmp_path, "\n".join(lines)).meta["oneflow"]["stages"]
    seconds = {one["stage"]: one["seconds"] for one in found}
    assert seconds == {"total": 3.5, "building a shared graph and plan": 0.25}


def test_tensors_of_the_first_versions(tmp_path):
    text = (
        'tensor([], flow.Size([2, 4]), placement=oneflow.placement(device_type="gpu", machine_device_ids={0 : [0]}, '
        "hierarchy=(1,)), dtype=flow.float32)"
    )
    trace = logs.read(tmp_path, f"(MODULE:m:M())\n(PARAMETER:m.w:{text})\n(BUFFER:m.b:{text})\n")
    assert trace.modules[["params", "param_bytes", "buffer_bytes"]].to_numpy().tolist() == [[8, 32, 32]]
    assert trace.complete  # the last tensor ends in the line that it begins in
