import torch

import nbkit
from nbkit.graphs.rows import GraphRows
from nbkit.trace.trace import Trace
from nbkit.views.sections.graph.graph import graph_sections, graph_totals


def test_several_graphs_are_counted_one_by_one() -> None:
    rows = GraphRows()
    weight, x = rows.node("main", "parameter", "w"), rows.node("main", "input", "x")
    product, inner = rows.node("main", "op", "p", op="mm"), rows.node("branch", "op", "i", op="relu")
    rows.edge(weight, product, "w", dst_port=0)
    rows.edge(x, product, "x", dst_port=1)
    rows.edge(product, inner, "p", dst_port=0)
    sections = {section.title: section.texts() for section in graph_totals(Trace(rows.frames()), 5)}
    assert sections["Graphs"] == [["main", "3", "1", "1", "2"], ["branch", "1", "1", "0", "1"]]


def test_a_tree_of_modules_without_ops_has_its_parts() -> None:
    trace = nbkit.opgraph(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    (parts,) = graph_sections(trace, 5)
    assert [row[1] for row in parts.rows][1:] == ["Sequential", "Linear", "ReLU"]
