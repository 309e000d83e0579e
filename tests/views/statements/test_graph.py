"""What a report says of a graph, in whole sentences."""

from typing import Any

from nbkit.schema import CORRESPONDENCE, NODES, PARTS
from nbkit.trace.trace import Trace
from nbkit.views.statements.graph import graph_statements, skipped_statement
from nbkit.views.statements.statement import Link, Statement, op_link, statements_html


def node(number: int, **more: Any) -> dict[str, Any]:
    return {"graph": "g", "node_id": number, "kind": "op", "op": "mm", "name": f"n{number}", **more}


def statements(*nodes: dict[str, Any], meta: Any = (), **frames: Any) -> dict[str, tuple[Any, ...]]:
    trace = Trace({"nodes": NODES.frame(nodes), **frames}, dict(meta))
    return {one.question: one.sentences for one in graph_statements(trace)}


def test_a_graph_is_told_by_its_nodes_ops_phases_and_parts() -> None:
    nodes = [node(0, kind="input", op=None), *(node(n, phase="forward") for n in (1, 2)), node(3, op="add")]
    part = {"graph": "g", "name": "a", "nodes": 1}
    parts = [{**part, "part_id": n, "role": role} for n, role in enumerate(["mlp", "mlp", "norm", None])]
    nodes[3]["inserted"] = "cast"
    said = statements(*nodes, meta={"source": "onnx <a>"}, parts=PARTS.frame(parts))
    assert said == {
        "What it is": (("Read from: onnx <a>.",), ("g: 4 nodes (op 3, input 1).",)),
        "What it is made of": (("mlp 2, norm 1; 1 part without one.",),),
        "Which ops": (("mm 2, add 1.",),),
        "Which phases": (("forward 2.",),),
        "What was inserted": (("cast 1.",),),
        "Is anything wrong": (("All of the source was read.",),),
    }


def test_only_the_first_graphs_and_the_most_frequent_ops_are_listed() -> None:
    nodes = [node(n, graph=f"g{n}", op=f"op{n // 2}") for n in range(20)]
    said = statements(*nodes)
    assert said["What it is"][7:] == (("g7: 1 node (op 1).",), ("And 12 more graphs.",))
    assert said["Which ops"][0][0].endswith("op7 2, 2 others.")
    assert len(statements(*nodes[:8])["What it is"]) == 8
    assert "Is anything wrong" not in said


def test_two_graphs_are_told_by_what_corresponds() -> None:
    row = {"level": "op", "action": "match", "relation": "same", "left_id": 0, "right_id": 1}
    alone = {"level": "op", "action": "right_only", "relation": "cast", "right_id": 2}
    rows = [row, {**row, "relation": "cast"}, alone, {**row, "level": "part", "relation": None}]
    said = statements(node(0), correspondence=CORRESPONDENCE.frame(rows))
    assert said["What corresponds"] == (
        ("Parts: 1 on both sides, 0 left only, 0 right only.",),
        ("Ops: 2 on both sides (cast 1), 0 left only, 1 right only.",),
    )


def test_lines_that_could_not_be_read_are_counted_and_the_first_shown() -> None:
    skipped = [{"line": 1000 * n, "reason": "cut"} for n in range(1, 5)]
    assert skipped_statement({"skipped_lines": skipped}) == Statement(
        "Is anything wrong",
        (
            ("4 lines could not be read; trace.meta['skipped_lines'] has them all.",),
            *((f"line {n},000: cut",) for n in (1, 2, 3)),
        ),
        "bad",
        is_first=True,
    )
    assert skipped_statement({"skipped_lines": []}) == Statement("Is anything wrong", (), is_first=True)


def test_statements_are_html_whose_links_select_rows() -> None:
    words = ("a < b: ", op_link("op 3", 3), Link("<n>", "graph", 4), Link("all", "graph"))
    assert statements_html([Statement("Why?", (words,), "bad"), Statement("&", (("x",), ("y",)))], "t1") == (
        '<dl class="nbkit-summary"><dt>Why?</dt><dd class="nbkit-bad"><p>a &lt; b: '
        '<a href="#t1-op_table" data-trace="t1" data-widget="op_table" data-value="3">op 3</a>'
        '<a href="#t1-graph" data-trace="t1" data-widget="graph" data-value="4">&lt;n&gt;</a>'
        '<a href="#t1-graph">all</a></p></dd>'
        "<dt>&amp;</dt><dd><p>x</p><p>y</p></dd></dl>"
    )
