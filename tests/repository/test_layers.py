"""The layer rule holds in nbkit, the sample models and the notebooks; and the checker can fail."""

import json
from pathlib import Path

import pytest

from tests.support.layer_rules import broken_outside, broken_rules, circles

ROOT = Path(__file__).parents[2]


def make_package(folder: Path, files: dict[str, str]) -> Path:
    for name, source in files.items():
        path = folder / "nbkit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return folder


def test_nbkit_keeps_the_layer_rule():
    assert (ROOT / "nbkit/schema/table.py").is_file()
    assert broken_rules(ROOT) == []


def test_no_files_and_no_folders_import_each_other_in_a_circle():
    assert circles(ROOT) == []


def test_a_circle_of_folders_is_named(tmp_path):
    files = {
        "views/a/x.py": "from nbkit.views.b import y",
        "views/b/y.py": "def f():\n    from nbkit.views.c.z import g",
        "views/c/z.py": "import importlib\nimportlib.import_module('nbkit.views.a.w')",
        "views/a/w.py": "import nbkit.schema.table",
        "schema/table.py": "",
    }
    found = circles(make_package(tmp_path, files))
    assert found == [f"nbkit/views/{name} imports what imports it" for name in ("a", "b", "c")]


def test_a_circle_of_files_is_named_in_their_folder(tmp_path):
    files = {"trace/a.py": "from nbkit.trace.b import B", "trace/b.py": "from nbkit.trace import a", "trace/c.py": ""}
    found = circles(make_package(tmp_path, files))
    assert found == ["nbkit/trace/a.py imports what imports it", "nbkit/trace/b.py imports what imports it"]


@pytest.mark.parametrize("path", sorted((ROOT / "sample_models").glob("*.py")), ids=lambda path: path.name)
def test_sample_models_use_only_torch_and_the_public_nbkit(path):
    assert broken_outside(path.read_text(), "sample_models") == []


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_use_only_the_public_nbkit(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(line for line in cell["source"] if not line.startswith("%")) for cell in cells]
    assert [broken for source in sources for broken in broken_outside(source, "notebooks")] == []


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("views/a.py", "import nbkit.magics.b", "1: views imports nbkit.magics.b, but a module imports only"),
        ("analysis/a.py", "from nbkit.capture import b", "analysis and capture are siblings: none imports another"),
        ("trace/a.py", "from nbkit.views import a", "views is above trace"),
        ("analysis/a.py", "import torch", "torch is only for capture"),
        ("views/a.py", "def f():\n    import torch.nn as nn", "2: views imports torch.nn, but torch is only"),
        ("views/a.py", "import importlib\nimportlib.import_module('torch')", "torch is only for capture"),
        ("views/a.py", "from IPython.display import display", "IPython is only for magics"),
        ("capture/a.py", "import plotly.express", "plotly is only for views"),
        ("schema/table.py", "import requests", "requests is no dependency that a layer may use"),
        ("capture/a.py", "import sample_models.llama", "nbkit imports nothing of sample_models"),
        ("capture/a.py", "from nbkit import optrace", "nothing inside the package imports the package root"),
        (
            "views/a.py",
            "from nbkit.compat import torch_versions",
            "torch_versions, but torch is only",
        ),
        ("compat/a.py", "from nbkit.views import b", "views is above compat"),
        ("views/a.py", "import nbkit", "nothing inside the package imports the package root"),
        ("helpers.py", "", "nbkit/helpers.py: is in no layer"),
        ("misc/a.py", "", "nbkit/misc/a.py: is in no layer"),
    ],
)
def test_a_broken_rule_is_named(tmp_path, name, source, reason):
    layers = dict.fromkeys(("magics/b.py", "capture/b.py", "views/b.py"), "")
    (broken,) = broken_rules(make_package(tmp_path, layers | {name: source}))
    assert broken.startswith(f"nbkit/{name}")
    assert reason in broken


def test_what_the_rule_allows_passes(tmp_path):
    files = {
        "__init__.py": "from nbkit.magics import b\nfrom nbkit import load",
        "verbs/load.py": "from nbkit.trace.trace import Trace",
        "trace/trace.py": "import json\nfrom nbkit import schema\nimport pyarrow.parquet",
        "schema/table.py": "import pandas as pd",
        "capture/a.py": "import torch\nfrom nbkit.capture import b\nfrom nbkit.trace.trace import Trace",
        "capture/b.py": "from . import a",
        "magics/b.py": "import IPython\nimport nbkit.capture.a",
    }
    assert broken_rules(make_package(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("from nbkit.capture.mode import Mode", "uses only the public nbkit"),
        ("from nbkit import _hidden", "uses only the public nbkit"),
        ("import transformers", "transformers is no dependency that a layer may use"),
    ],
)
def test_notebooks_are_held_to_the_public_names(source, reason):
    (broken,) = broken_outside(source, "notebooks")
    assert reason in broken
