"""The tables of two graphs side by side."""

from dataclasses import replace

import torch

import nbkit
from nbkit.views.sections.graph.correspondence import correspondence_sections
from nbkit.views.sections.section import Section
from sample_models.llama import LLAMA_TINY, Llama
from tests.support.graph_texts import ONEFLOW, PADDLE, Net


def sections(tmp_path, count: int = 5) -> dict[str, Section]:
    (tmp_path / "net.log").write_text(ONEFLOW)
    (tmp_path / "net.txt").write_text(PADDLE.replace("matmul_v2", "matmul").replace("float32", "float16"))
    trace = nbkit.opgraph(tmp_path / "net.log", against=tmp_path / "net.txt")
    return {section.title: section for section in correspondence_sections(trace, count)}


def test_levels_are_counted(tmp_path):
    assert sections(tmp_path)["Correspondence"].texts() == [
        ["parts", "0", "2", "0"],
        ["parameters", "1", "0", "0"],
        ["ops", "2", "1", "1"],
    ]


def test_parameters_say_what_differs(tmp_path):
    assert sections(tmp_path)["Parameters that differ"].texts() == [
        [
            "net.up.weight",
            "fc.w_0",
            "permute",
            "transposed; [8, 4] on the left, [4, 8] on the right; float32 on the left, float16 on the right",
        ]
    ]


def test_ops_of_one_side_are_counted_by_type(tmp_path):
    assert sections(tmp_path)["Ops of one side only"].texts() == [["cast", "1", "0"]]


def test_parts_with_a_role_stand_side_by_side():
    with torch.device("meta"):
        models = [Llama(replace(LLAMA_TINY, num_hidden_layers=layers)) for layers in (1, 2)]
    trace = nbkit.opgraph(models[1], against=models[0])
    (parts,) = [one for one in correspondence_sections(trace, 50) if one.title == "Side by side"]
    rows = [row[:3] for row in parts.texts() if row[2] == "block"]
    assert rows == [["model.layers.0", "model.layers.0", "block"], ["model.layers.1", None, "block"]]
    assert parts.texts()[0][-3:] == ["1", "0", "0"]  # the weight of the embedding


def test_the_most_frequent_ops_of_one_side_come_first():
    class More(Net):
        def forward(self, x):
            return super().forward(x).relu().tanh().relu().sigmoid().relu().tanh()

    more, net = (torch.export.export(model, (torch.ones(2, 4),)) for model in (More(), Net()))
    trace = nbkit.opgraph(more, against=net)
    (ops,) = [one for one in correspondence_sections(trace, 50) if one.title == "Ops of one side only"]
    assert [row[1] for row in ops.texts()] == ["3", "2", "1"]


def test_one_graph_alone_has_none():
    assert correspondence_sections(nbkit.opgraph(Net()), 5) == []


STATE = """{
    (%0) = "builtin.parameter" () {is_parameter:[true],parameter_name:"w",persistable:[true]} : () -> tensor<8x16xf32>
    (%1) = "builtin.parameter" () {is_parameter:[false],parameter_name:"cos",persistable:[true]} : () -> tensor<4x8xf32>
    (%2) = "pd_op.data" () {name:"x",persistable:[true],shape:(pd_op.IntArray)[4,8]} : () -> builtin.tensor<4x8xf32>
    (%3) = "pd_op.matmul" (%2, %0) {transpose_x:false} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
}
"""


def test_other_state_of_either_side_is_told_by_its_node(tmp_path):
    """State of no module, such as a buffer of a Paddle program, has no partner in a module."""
    (tmp_path / "net.txt").write_text(STATE)
    model, text = torch.nn.Linear(8, 16, bias=False), tmp_path / "net.txt"
    for trace, side in ((nbkit.opgraph(model, against=text), "right"), (nbkit.opgraph(text, against=model), "left")):
        rows = trace.correspondence
        state = rows[rows["level"] == "state"]
        assert state[f"{side}_id"].notna().all() and len(state)
        names = trace.nodes.set_index("node_id").loc[state[f"{side}_id"], "name"]
        assert names.tolist() == state[f"{side}_name"].tolist()
        assert "other state" in trace.summary() and trace.brief()
