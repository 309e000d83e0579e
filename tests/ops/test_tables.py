"""What an op is stands in the op book: no other file of nbkit holds a table of op names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nbkit.ops.kinds import NAMES

ROOT = Path(__file__).parents[2] / "nbkit"
# Names of ops that are words of other things, too: columns of frames, statistics.
WORDS = frozenset("mean median std var min max norm sum numel index values other size shape stride bool int".split())
FEWEST = 3
# Files that keep one, and why. Tables of a file's own functions by op are none.
KEPT = {
    "analysis/graph_match/rows.py": "what is said of ops without a partner",
    "capture/cost/fake/unknown_number.py": "operators of Python",
    "capture/distributed/api_calls.py": "functions of torch.distributed, and their parameters",
    "capture/raw/vector_math.py": "functions of MKL",
    "capture/replay/phases.py": "where eigenvectors stand among the results that this file turns",
    "devices/families.py": "which measured op takes as long as others",
    "findings/time/outside_ops.py": "the calls of one function of torch, of anomaly mode",
    "simulated": "plants faults that the rest is to find, so it shares no table with that",
}


@pytest.fixture(scope="module")
def names():
    known = {name.partition("::")[2].partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    return {name.rstrip("_") for name in known | set(NAMES)} - WORDS - {""}


def tables(source: str, names: set[str]) -> list[int]:
    """Returns the lines of a module that hold a table of op names."""
    return [node.lineno for node, texts in _texts(ast.parse(source)) if _is_table(texts, names)]


def _is_table(texts: list[str], names: set[str]) -> bool:
    single = [text for text in texts if not text.isupper()]  # others are families
    known = [text for text in single if _short(text) in names]
    return len(known) >= FEWEST and len(known) >= 0.8 * len(single)


def _short(text: str) -> str:
    name = text.replace("::", ".").removeprefix("aten.").partition(".")[0]
    return name.rstrip("_") or name


def _texts(node: ast.AST) -> Iterator[tuple[ast.AST, list[str]]]:
    """Yields what may be a table, with the texts in it: words of a text, elements of a collection, keys of a dict."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr | ast.JoinedStr) and not isinstance(getattr(child, "value", None), ast.Call):
            continue  # docstrings and messages
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child, child.value.split()
        elif isinstance(child, ast.Set | ast.List | ast.Tuple):
            yield child, _constants(child.elts)
        elif isinstance(child, ast.Dict) and not any(map(_is_code, child.values)):
            yield child, _constants(child.keys)
        if not _is_of_own_code(child):
            yield from _texts(child)


def _constants(nodes: list[ast.expr | None]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _is_of_own_code(node: ast.AST) -> bool:
    """Returns whether it is dict.fromkeys(ops, function)."""
    is_table = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fromkeys"
    return is_table and len(node.args) == 2 and _is_code(node.args[1])


def _is_code(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Call | ast.Lambda | ast.Attribute)


@pytest.fixture(scope="module")
def found(names):
    files = {path.relative_to(ROOT): path.read_text() for path in ROOT.rglob("*.py")}
    lines = {str(path): tables(text, names) for path, text in files.items() if path.parts[0] != "ops"}
    return {path: at for path, at in lines.items() if at}


def test_no_file_outside_the_op_book_holds_a_table_of_ops(found):
    new = [f"{path}:{line}" for path, lines in found.items() for line in lines if not path.startswith(tuple(KEPT))]
    assert not new, "give it a name in nbkit/ops, beside its kin"


def test_what_is_kept_is_there(found):
    assert [path for path in KEPT if not any(file.startswith(path) for file in found)] == []


@pytest.mark.parametrize(
    "source",
    [
        'OPS = ("mm", "bmm", "addmm")',
        'OPS = {"mm": 1, "bmm": 1, "addmm": 2}',
        'OPS = frozenset("aten.mm aten.bmm aten.add_".split())',
        'def find(op):\n    return op in family("ADDS exp log tanh")',
    ],
)
def test_a_table_is_seen(names, source):
    assert tables(source, names)


@pytest.mark.parametrize(
    "source",
    [
        'OPS = {"mm": product, "bmm": product, "addmm": lambda call: 2}',
        'OPS = {**dict.fromkeys("mm bmm addmm".split(), product)}',
        'OPS = family("ADDS MULTIPLIES exp log")',
        'STATISTICS = ("mean", "std", "min", "max", "norm")',
        '"""Adds exp log and tanh."""',
    ],
)
def test_functions_by_op_families_and_statistics_are_none(names, source):
    assert not tables(source, names)
