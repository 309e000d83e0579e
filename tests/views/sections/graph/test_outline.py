"""The outline and the tables of a graph, in text, HTML and words."""

from nbkit.schema import NODES, PARTS
from nbkit.trace.trace import Trace
from nbkit.views.sections.graph.graph import graph_sections, parts_section
from nbkit.views.sections.graph.outline import outline
from nbkit.views.statements.graph import graph_statements
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from tests.support.fake_graphs import EVIL, training_graph


def test_repeats_are_one_row_of_the_outline() -> None:
    rows = [(row.depth, row.title, row.role, row.nodes) for row in outline(training_graph(6))][:7]
    assert rows == [
        (0, "step", None, 298),
        (1, "forward", None, 122),
        (2, "embed_tokens", None, 1),
        (2, "layers", None, 120),
        (3, "0 × 6", "block", 20),
        (4, "input_layernorm", "norm", 4),
        (4, "self_attn", "attention", 7),
    ]


def test_a_part_says_which_ops_are_right_in_it_and_what_it_gives() -> None:
    (row,) = [row for row in outline(training_graph(1)) if row.name == "self_attn" and row.phase == "forward"]
    assert (row.ops, row.result) == ("aten.bmm × 2, aten._softmax", "bfloat16 [2, 128, 64]")


def test_parts_that_hold_each_other_end() -> None:
    nodes = NODES.frame([{"node_id": 0, "graph": "g", "kind": "op", "name": "a", "part_id": 0}])
    parts = [{"part_id": one, "parent_id": 1 - one, "graph": "g", "name": "x", "nodes": 1} for one in (0, 1)]
    assert [row.name for row in outline(Trace({"nodes": nodes, "parts": PARTS.frame(parts)}))] == ["g"]


def test_the_outline_says_that_it_goes_on() -> None:
    section = parts_section(training_graph(2), 3)
    assert [row[0] for row in section.texts()] == ["step", "\u2003forward", "\u2003\u2003embed_tokens"]
    assert section.caption == "and more parts"


def test_tables_count_roles_ops_and_phases() -> None:
    sections = {section.title: section.texts() for section in graph_sections(training_graph(2), 2)}
    assert list(sections) == ["Parts", "Roles", "Op types", "Phases"]
    assert sections["Roles"][0] == ["norm", "8", "0"]
    assert sections["Op types"] == [["aten._fused_adamw_.default", "18"], ["aten.mm.default", "15"]]
    assert sections["Phases"] == [["forward", "42"], ["backward", "42"], ["optimizer", "18"]]


def test_the_summary_of_a_graph_needs_no_ops_and_names_what_was_not_read() -> None:
    graph = training_graph(2, skipped_lines=[{"line": 7, "text": "x", "reason": "no record"}])
    lines = summary(graph).splitlines()
    assert lines[0] == "102 ops. 1 line could not be read, line 7: no record."
    assert lines[2] == "opgraph a step: 1 graph, 102 nodes, 157 edges"
    assert lines[-1] == "1 line could not be read, the first is line 7: no record"
    assert summary(Trace({"nodes": NODES.frame()}, {"verb": "opgraph"})).endswith("No node was read.")


def test_the_static_twin_has_the_outline_and_no_markup_of_names() -> None:
    graph = training_graph(2)
    graph.parts["name"] = EVIL
    html = static_table(graph)
    assert "<caption>Parts</caption>" in html and "<script" not in html and "<img" not in html


def test_the_words_of_a_report_say_what_it_is_made_of() -> None:
    said = {
        one.question: one for one in graph_statements(training_graph(2, error="crash", skipped_lines=[{"line": 3}]))
    }
    assert said["What it is"].sentences == (("step: 102 nodes (op 102).",),)
    assert said["What it is made of"].sentences[0][0].startswith("norm 8, block 4, attention 4, mlp 4")
    assert said["Is anything wrong"].tone == "bad"
