"""The text of a cost table says what it counts, and its numbers read as the Analyzer prints them."""

import pytest
import torch
from torch import nn

import nbkit


def table(**options):
    return nbkit.cost_table(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.ones(2, 3), **options)


def test_a_line_per_node_below_what_was_counted():
    assert nbkit.cost_table_text(table()).splitlines() == [
        "Sequential: 4 nodes, convention nbkit",
        "FLOPs: 2 x multiply-adds of matrix products, convolutions and attention",
        "Attention: default, sizing: storage, layer norm: contiguous",
        "",
        "    op kind     name  accumulate size  incremental size  output size  temp size  param size  backward size  "
        "forward FLOPs  backward FLOPs",
        "-----------  -------  ---------------  ----------------  -----------  ---------  ----------  -------------  "
        "-------------  --------------",
        "placeholder  input_1             24 B               0 B         24 B        0 B         0 B            0 B  "
        "            0               0",
        "call_module       _0             24 B               0 B          0 B       32 B        64 B           24 B  "
        "           48              48",
        "call_module       _1             56 B              32 B          0 B        0 B         0 B           32 B  "
        "            0               0",
        "     output   output             56 B               0 B          0 B        0 B         0 B           32 B  "
        "            0               0",
    ]


def test_the_header_says_another_convention():
    lines = nbkit.cost_table_text(table(convention="analyzer", sizing="storage")).splitlines()
    assert lines[1] == "FLOPs: multiply-adds, and one for each element of an elementwise op; 5 in a norm"
    assert lines[2] == "Attention: math, sizing: storage, layer norm: input strides"


def test_a_frame_without_its_attributes_says_so():
    found = table()
    found.attrs = {}
    assert nbkit.cost_table_text(found).startswith("How FLOPs and sizes were counted is not known")


def test_another_frame_is_refused():
    with pytest.raises(nbkit.SchemaError, match="node_costs needs the columns"):
        nbkit.cost_table_text(table().drop(columns="name"))


def test_a_frame_from_before_shapes_were_in_it_is_text_all_the_same():
    whole = table()
    older = whole.drop(columns=["shape", "dtype", "device"])
    assert nbkit.cost_table_text(older) == nbkit.cost_table_text(whole)
    with pytest.raises(nbkit.SchemaError, match="missing: name"):
        nbkit.cost_table_text(older.drop(columns="name"))
