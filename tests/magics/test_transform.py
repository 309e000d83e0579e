"""The rewriting steps of a traced cell, each on text or tree alone."""

import ast
from types import SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from nbkit.magics import CELL_MAGICS
from nbkit.magics.transform import LineStep, SingleLineStep, TreeStep

STEP = LineStep(CELL_MAGICS)


def rewritten(cell: str, interactivity: str = "last_expr") -> str:
    lines = STEP(cell.splitlines(keepends=True))
    tree = tree_step(interactivity).visit(ast.parse("".join(lines)))
    return ast.unparse(tree)


def tree_step(interactivity: str = "last_expr") -> TreeStep:
    return TreeStep(SimpleNamespace(ast_node_interactivity=interactivity), CELL_MAGICS)


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


def test_several_runs_are_a_loop_without_a_name_of_its_own():
    assert rewritten("%%optime -r 2\ny = 1\ny").splitlines() == [
        "with _nbkit_magic.session('%%optime -r 2', False, False):",
        "    for _nbkit_magic.round in _nbkit_magic.rounds():",
        "        y = 1",
        "        _nbkit_magic.keep(y)",
        "_nbkit_magic.take()",
    ]


@pytest.mark.parametrize("options", ["", "-r 0", "-w 0 -r 0", "-r two", "-r 2 --unknown"])
def test_one_run_and_a_bad_option_are_no_loop(options):
    assert ".rounds()" not in rewritten(f"%%optime {options}\ny = 1")


@pytest.mark.parametrize(
    ("body", "is_loop"),
    [
        ("break", False),
        ("if y:\n    with z:\n        continue", False),
        ("try:\n    pass\nfinally:\n    break", False),
        ("for i in y:\n    pass\nelse:\n    break", False),
        ("while y:\n    for i in y:\n        pass\n    else:\n        break", True),
        ("for i in y:\n    if i:\n        break", True),
        ("def f():\n    break", True),
    ],
)
def test_a_break_that_the_bare_cell_refuses_gets_no_loop_to_leave(body, is_loop):
    assert (".rounds()" in rewritten(f"%%optime -r 2\n{body}")) is is_loop


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
    tree = tree_step().visit(ast.parse("".join(STEP(["%%optrace\n", "\n", "a = 1\n", "a\n"]))))
    block, shown = tree.body
    assert [block.lineno, *(statement.lineno for statement in block.body), shown.lineno] == [1, 3, 4, 4]


def test_a_tree_without_marker_is_untouched():
    tree = ast.parse("'doc'\nx = 1\nx")
    before = ast.dump(tree, include_attributes=True)
    assert ast.dump(tree_step().visit(tree), include_attributes=True) == before


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
