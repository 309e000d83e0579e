"""The rewriting steps of a traced cell, each on text or tree alone."""

import ast
from types import SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from nbkit.magics.transform import LineStep, SingleLineStep, TreeStep

STEP = LineStep({"optrace"})


def rewritten(cell: str, interactivity: str = "last_expr") -> str:
    lines = STEP(cell.splitlines(keepends=True))
    tree = TreeStep(SimpleNamespace(ast_node_interactivity=interactivity)).visit(ast.parse("".join(lines)))
    return ast.unparse(tree)


def test_line_1_becomes_the_marker_and_the_rest_stays():
    assert STEP(["%%optrace -o 't' \n", "\n", "x = 1\n"]) == ["_nbkit_magic(\"%%optrace -o 't'\")\n", "\n", "x = 1\n"]


@pytest.mark.parametrize(
    "cell", ["", "x = 1\n", "%optrace\n", "%%optraces\nx", "%%time\nx", "%%optrace?\n", "%%optrace\n%%time\nx", "%%\n"]
)
def test_other_cells_are_left_alone(cell):
    lines = cell.splitlines(keepends=True)
    assert STEP(list(lines)) == lines


def test_indent_and_prompts_are_taken_off_the_body():
    assert STEP(["%%optrace\n", "  x\n", "  y\n"])[1:] == ["x\n", "y\n"]
    assert STEP(["%%optrace\n", ">>> x\n", "... y\n"])[1:] == ["x\n", "y\n"]


def test_the_body_goes_into_the_session_and_its_value_round_the_end():
    assert rewritten("%%optrace -q\ny = 1\ny").splitlines() == [
        "with _nbkit_magic.session('%%optrace -q', False, False):",
        "    y = 1",
        "    _nbkit_magic.keep(y)",
        "_nbkit_magic.take()",
    ]


def test_future_imports_stay_in_front_also_behind_a_docstring():
    lines = rewritten("%%optrace\n'doc'\nfrom __future__ import annotations\ny = 1").splitlines()
    assert lines[1:] == [
        "from __future__ import annotations", "with _nbkit_magic.session('%%optrace', False, False):", "    y = 1"
    ]  # fmt: skip
    assert "doc" in lines[0]


def test_an_empty_body_is_told_to_the_session():
    assert rewritten("%%optrace\n# nothing") == "with _nbkit_magic.session('%%optrace', True, False):\n    pass"


def test_help_takes_the_place_of_the_body():
    assert rewritten("%%optrace -o t --help\nboom()") == "_nbkit_magic.help('%%optrace -o t --help')"


@pytest.mark.parametrize("statement", ["y = 1", "y += 1", "y: int = 1"])
def test_assignments_are_shown_where_the_shell_shows_them(statement):
    assert rewritten(f"%%optrace\n{statement}", "last_expr_or_assign").splitlines()[2:] == ["y"]
    assert len(rewritten(f"%%optrace\n{statement}").splitlines()) == 2


def test_lines_keep_their_numbers():
    tree = TreeStep(SimpleNamespace(ast_node_interactivity="last_expr")).visit(
        ast.parse("".join(STEP(["%%optrace\n", "\n", "a = 1\n", "a\n"])))
    )
    block, shown = tree.body
    assert [block.lineno, *(statement.lineno for statement in block.body), shown.lineno] == [1, 3, 4, 4]


def test_a_tree_without_marker_is_untouched():
    tree = ast.parse("'doc'\nx = 1\nx")
    before = ast.dump(tree, include_attributes=True)
    assert ast.dump(TreeStep(SimpleNamespace()).visit(tree), include_attributes=True) == before


def test_a_cell_is_incomplete_until_a_blank_line():
    manager = TransformerManager()
    manager.cleanup_transforms.append(STEP)
    checks = [manager.check_complete(cell)[0] for cell in ("%%optrace", "%%optrace\nx", "%%optrace\nx\n\n")]
    assert checks == ["incomplete", "incomplete", "complete"]
    assert SingleLineStep.has_side_effects is True


@pytest.mark.parametrize(
    ("body", "awaits"),
    [
        ("await f()", True),
        ("x = [y async for y in z]", True),
        ("async with a:\n    pass", True),
        ("async def f():\n    await g()", False),
        ("y = 1", False),
    ],
)
def test_the_session_is_told_whether_the_cell_awaits(body, awaits):
    assert f"session('%%optrace', False, {awaits})" in rewritten(f"%%optrace\n{body}")
