"""The sizes that docs/development/style.md names: of files, folders, functions and of README.md."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUNDLES = ROOT / "nbkit/views/static"
PLACES = [(ROOT / "nbkit", (".py", ".h", ".cpp")), (ROOT / "widgets/src", (".js", ".css"))]
SOURCES = [
    path
    for folder, kinds in PLACES
    for path in sorted(folder.rglob("*"))
    if path.suffix in kinds and BUNDLES not in path.parents
]


def length(function):
    """Returns the lines of a function without those of its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1) * is_docstring


def test_there_are_sources_to_measure():
    assert len(SOURCES) > 500


def test_no_file_has_more_than_400_lines():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: count for name, count in lengths.items() if count > 400} == {}


def test_no_folder_has_more_than_15_files_beside_its_init():
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in SOURCES if path.name != "__init__.py")
    assert {name: count for name, count in counts.items() if count > 15} == {}


def test_no_function_has_more_than_50_lines_beside_its_docstring():
    functions = [
        (path, node)
        for path in SOURCES
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert {f"{path.relative_to(ROOT)}: {node.name}" for path, node in functions if length(node) > 50} == set()


def test_the_readme_is_read_in_minutes():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
