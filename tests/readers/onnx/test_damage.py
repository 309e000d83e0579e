"""Tests ONNX files that are damaged, incomplete or hostile: one sentence, or all that can be read; nothing is run."""

import json
import random
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nbkit.errors import TraceError
from nbkit.readers.onnx.metadata import names
from nbkit.readers.onnx.reader import read_onnx_model
from tests.readers.onnx_files import BRANCHES, SCOPED, written


def read(data, tmp_path):
    path = tmp_path / "some.onnx"
    path.write_bytes(data)
    return read_onnx_model(path)


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"text\n" * 99, b"PK\x03\x04" + b"0" * 200, b"\x08\x0a", bytes(range(256))]
)
def test_what_is_no_model_is_refused_in_one_sentence(data, tmp_path):
    with pytest.raises(TraceError, match=r"some.onnx (is no ONNX model|has no ONNX graph), or it is cut off") as caught:
        read(data, tmp_path)
    assert str(caught.value).count(". ") == 0


def test_a_model_cut_anywhere_is_refused_unless_its_main_graph_is_whole(tmp_path):
    data = written(BRANCHES, tmp_path).read_bytes()
    whole = read(data, tmp_path).nodes[lambda nodes: nodes["graph"] == "main"]
    readable = []
    for end in range(len(data)):
        try:
            trace = read(data[:end], tmp_path)
        except TraceError:
            continue
        readable.append(trace.meta["complete"])
        assert trace.nodes[trace.nodes["graph"] == "main"].equals(whole)
    assert readable == [False, True, True]  # after each of the opsets, and before the function


def test_texts_that_are_not_utf_8_are_kept_as_far_as_they_are(tmp_path):
    data = written(SCOPED, tmp_path, ("/model/Mul",)).read_bytes().replace(b"/model/Mul", b"/m\xf4\xe9el/Mul")
    trace = read(data, tmp_path)
    assert trace.nodes["name"][2] == "/m\ufffd\ufffdel/Mul"
    assert trace.meta["notes"][0].startswith("1 texts are not UTF-8")
    trace = read(data.replace(b"MatMul", b"M\xf4tMul").replace(b"\x0a\x01h", b"\x0a\x01\xf4"), tmp_path)
    assert trace.nodes["op"][2] == "M\ufffdtMul"
    assert trace.meta["notes"][0].startswith("3 texts are not UTF-8")  # of a list too: what a node reads


def test_changed_bytes_give_a_trace_or_the_one_error(tmp_path):
    data, chance = written(BRANCHES, tmp_path).read_bytes(), random.Random(0)
    outcomes = set()
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(data))] = chance.randrange(256)
        try:
            outcomes.add(len(read(bytes(changed), tmp_path).nodes) > 0)
        except TraceError:
            outcomes.add(None)
    assert outcomes == {True, None}


@pytest.mark.parametrize(("name", "reason"), [("absent.onnx", "no such file"), (".", "directory")])
def test_a_path_that_cannot_be_read_is_said(name, reason, tmp_path):
    with pytest.raises(TraceError, match=rf"Cannot read .*: .*{reason}"):
        read_onnx_model(tmp_path / name)


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    path = written(SCOPED, tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(TraceError, match=r"package onnx is not installed: pip install 'nbkit-torch\[onnx\]'\.$"):
        read_onnx_model(path)


def test_external_data_are_named_and_not_opened(tmp_path):
    model = onnx.load_model(written(SCOPED, tmp_path))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.eye(4, dtype=np.float32), "w"))
    path = tmp_path / "external.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    trace = read_onnx_model(path)
    assert trace.meta["onnx"]["external_data"] == ["weights.bin"]
    weight = trace.nodes.set_index("name").loc["w"]
    assert weight["shape"] == "[4, 4]"
    assert json.loads(weight["attributes"])["external_data"]["location"] == "weights.bin"


def test_odd_names_and_values_are_text(tmp_path):
    name = "</script>__import__('os').system('exit 1')\n"
    nodes = [
        helper.make_node("Relu", ["x"], [name], name),
        helper.make_node("Strange", [name, "nowhere"], ["y"], domain=name),
    ]
    info = helper.make_tensor_value_info("x", 99, [None, "N", -1])
    graph = helper.make_graph(nodes, name, [info], [helper.make_empty_tensor_value_info("y")])
    trace = read(helper.make_model(graph).SerializeToString(), tmp_path)
    assert trace.nodes["graph"].unique().tolist() == [name]
    assert trace.nodes.loc[0, ["dtype", "shape"]].tolist() == ["element type 99", "[null, null, -1]"]
    assert trace.nodes["op"].dropna().tolist() == ["Relu", f"{name}.Strange"]
    assert trace.edges["src"].isna().tolist() == [False, False, True, False]
    assert trace.graph_tensors["numel"].isna().all()
    assert trace.meta["notes"][0].startswith(f"The file has ops of {name!r}, but does not say of which version")


def test_old_files_name_initializers_as_inputs_and_tensors_may_lie_about_their_size(tmp_path):
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**40, 2**40], raw_data=b"\0" * 4)
    shapes = [helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in ("x", "w", "y")]
    node = helper.make_node("Mul", ["x", "w"], ["y"], value=TensorProto(data_type=TensorProto.FLOAT, dims=[3]))
    graph = helper.make_graph([node], "old", shapes[:2], shapes[2:], [weight])
    nodes = read(helper.make_model(graph).SerializeToString(), tmp_path).nodes
    assert nodes["kind"].tolist() == ["input", "constant", "op", "output"]
    assert json.loads(nodes["attributes"][2])["value"]["value"].startswith("unreadable: ")


@pytest.mark.parametrize("text", ["[" * 9000, "['a', exit()]", "'a'", "[1]", "[" + "'a'," * 50_000 + "]", "\0"])
def test_a_list_of_names_is_read_as_literals_alone(text):
    assert names(text) == []
