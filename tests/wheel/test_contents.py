"""The wheel is the package with its bundle and its recorder's sources, and nothing else; the sdist makes the same."""

from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

from nbkit import __version__
from nbkit.capture.native.library import FOLDER, SOURCES
from tests.wheel.building import ROOT, built, files, unpacked

INFO = f"nbkit_torch-{__version__}.dist-info"
KINDS = {".py", ".js", ".css", ".h", ".cpp", ".typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return files(built("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sources."""
    made = built("sdist", tmp_path_factory.mktemp("sdist"))
    return unpacked(made, tmp_path_factory.mktemp("sources"))


def test_the_wheel_has_bundle_recorder_types_and_licence(wheel):
    static = {str(path.relative_to(ROOT)) for path in (ROOT / "nbkit/views/static").iterdir()}
    native = {str((FOLDER / name).relative_to(ROOT)) for name in SOURCES}
    assert static and native
    assert static | native | {"nbkit/__init__.py", "nbkit/py.typed", f"{INFO}/licenses/LICENSE"} <= wheel.keys()


def test_the_wheel_has_every_file_of_the_package_as_it_is(wheel):
    paths = [path for path in (ROOT / "nbkit").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {name for name in wheel if name.startswith("nbkit/")} == {str(path.relative_to(ROOT)) for path in paths}
    assert [path.name for path in paths if wheel[str(path.relative_to(ROOT))] != path.read_bytes()] == []


def test_the_wheel_has_nothing_else(wheel):
    assert {PurePosixPath(name).parts[0] for name in wheel} == {"nbkit", INFO}
    assert {PurePosixPath(name).suffix for name in wheel if name.startswith("nbkit/")} <= KINDS


def test_the_wheel_tells_what_it_is(wheel):
    told = Parser().parsestr(wheel[f"{INFO}/METADATA"].decode())
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("nbkit-torch", __version__, "MIT")
    assert told["Requires-Python"] == ">=3.11"
    assert told.get_payload().startswith("# nbkit\n")


def test_the_sdist_makes_the_same_wheel(wheel, sdist, tmp_path):
    assert files(built("wheel", tmp_path, sdist)) == wheel


def test_the_sdist_has_no_built_or_downloaded_files(sdist):
    parts = {part for path in sdist.rglob("*") for part in path.relative_to(sdist).parts}
    assert {"tests", "widgets", "notebooks", "pyproject.toml"} <= parts
    assert parts.isdisjoint({"node_modules", ".venv", "out", "__pycache__", ".git"})
