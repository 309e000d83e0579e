"""pyproject.toml is the one list of dependencies: conda's file, the constraints and the imports agree with it."""

import ast
import json
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import nbkit
from tests.support.layer_rules import imports

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
OURS = {"nbkit", "sample_models", "tests", "bench", "docs"}


def requirements(*extras: str) -> dict[str, Requirement]:
    """Requirements of the project and its extras by name; those of an extra that an extra names are included."""
    listed = [Requirement(line) for line in [*PROJECT["dependencies"], *(line for e in extras for line in EXTRAS[e])]]
    inner = sorted({extra for each in listed if each.name == PROJECT["name"] for extra in each.extras} - set(extras))
    if inner:
        return requirements(*extras, *inner)
    return {canonicalize_name(each.name): each for each in listed}


def undeclared(folder: str, *extras: str) -> set[str]:
    """Third-party modules that the Python files of a folder import and no requirement provides."""
    declared = requirements(*extras)
    return {top for top in third_party(folder) if not {canonicalize_name(home) for home in homes(top)} & set(declared)}


@cache
def third_party(folder: str) -> frozenset[str]:
    """The third-party modules that the Python files of a folder import."""
    sources = (path.read_text() for path in (ROOT / folder).rglob("*.py"))
    tops = {used.module.split(".")[0] for source in sources for used in imports(source)}
    return frozenset(tops - OURS - {""} - sys.stdlib_module_names)


distributions = cache(packages_distributions)


def homes(module: str) -> list[str]:
    """The installed distributions that bring a module."""
    return list(distributions().get(module, [module]))


def conda_requirements() -> dict[str, Requirement]:
    return {each.name: each for each in (Requirement(line) for line in CONDA["dependencies"] if isinstance(line, str))}


def test_conda_takes_python_and_torch_from_conda_forge_in_the_same_ranges():
    assert CONDA["channels"] == ["conda-forge"]
    assert conda_requirements().keys() == {"python", "pytorch", "pip"}
    assert conda_requirements()["python"].specifier == SpecifierSet(PROJECT["requires-python"])
    assert conda_requirements()["pytorch"].specifier == requirements()["torch"].specifier


def test_the_pip_part_of_conda_is_the_project_alone():
    ((line,),) = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]
    assert line.startswith("-e .[")
    assert set(line.removeprefix("-e .[").removesuffix("]").split(",")) <= EXTRAS.keys()


def notebook_code() -> dict[str, str]:
    """The code cells of each notebook, without magics, and the scripts beside them."""
    code = {path.name: path.read_text() for path in (ROOT / "notebooks").glob("*.py")}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        lines = "".join("".join(cell["source"]) + "\n" for cell in cells).splitlines()
        code[path.name] = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
    return code


def in_conda() -> set[str]:
    """The packages that the environment of conda asks for."""
    ((line,),) = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]
    return {*requirements(*line.removeprefix("-e .[").removesuffix("]").split(","))}


def test_conda_has_what_the_notebooks_import():
    used = {name.module.split(".")[0] for text in notebook_code().values() for name in imports(text)}
    missing = {top for top in used - OURS - {""} - sys.stdlib_module_names if not {*homes(top)} & in_conda()}
    assert {"torch", "pandas", "nbclient"} <= used
    assert missing == set()


def test_conda_has_what_nbkit_asks_for_in_the_notebooks():
    texts = {path.name: path.read_text() for path in (ROOT / "notebooks").glob("*.ipynb")}
    extras = {extra for text in texts.values() for extra in re.findall(r"nbkit-torch\[(\w+)\]", text)}
    called = {name for text in texts.values() for name in re.findall(r"nbkit\.(\w+)\(", text)} & {*nbkit._AT_FIRST_USE}
    folders = {ROOT / Path(*nbkit._AT_FIRST_USE[name].split(".")).parent for name in called}
    beside = {used.module for folder in folders for path in folder.glob("*.py") for used in imports(path.read_text())}
    tops = {module.split(".")[0] for module in beside} - OURS - {""} - sys.stdlib_module_names
    lazy = {canonicalize_name(home) for top in tops for home in homes(top)}
    assert "onnx" in extras and "scipy" in lazy
    assert {*requirements(*extras), *lazy} <= in_conda()


def test_constraints_pin_a_torch_that_the_project_accepts():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    (pin,) = [Requirement(line) for line in lines if line.startswith("torch")]
    ((operator, version),) = [(each.operator, each.version) for each in pin.specifier]
    assert operator == "=="
    assert version in requirements()["torch"].specifier


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("nbkit", ("onnx", "mcp", "ranks", "solver")),
        ("sample_models", ()),
        ("notebooks", ("demo",)),
        ("tests", ("test",)),
        ("bench", ("bench",)),
        ("docs", ()),
    ],
)
def test_every_import_is_declared(folder, extras):
    assert undeclared(folder, *extras) == set()


def test_what_only_an_extra_brings_is_imported_where_it_is_used():
    optional = requirements("onnx", "mcp", "solver").keys() - requirements().keys()
    at_the_top = [
        (path.name, name.name if isinstance(node, ast.Import) else node.module)
        for path in (ROOT / "nbkit").rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    ]
    assert [one for one in at_the_top if str(one[1]).split(".")[0] in optional] == []
    assert {"onnx", "onnxruntime", "mcp", "scipy"} <= optional


def test_an_undeclared_import_would_be_seen():
    assert {"pytest", "yaml"} <= undeclared("tests")
    assert "torch" not in undeclared("tests")


def test_the_runtime_has_no_test_tools():
    assert (
        not {"pytest", "playwright", "transformers", "jupyterlab", "torchlens", "onnx", "mcp", "scipy"}
        & requirements().keys()
    )
