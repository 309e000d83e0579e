"""The environments keep to what pyproject.toml accepts, their tests are there, and their Python is found or named."""

import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.repository.test_environment import PROJECT
from tests.repository.test_environment import requirements as declared
from tests.versions import __main__ as versions
from tests.versions.environments import ENVIRONMENTS, chosen_tests, requirements

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_pip_would_keep_every_version_of_an_environment(name):
    accepted = {package: each.specifier for package, each in declared().items()}
    accepted["python"] = SpecifierSet(PROJECT["requires-python"])
    refused = [package for package, version in ENVIRONMENTS[name].items() if version not in accepted[package]]
    assert refused == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_chosen_tests_of_an_environment_are_there(name):
    assert [path for path in chosen_tests(name) if not (ROOT / path).exists()] == []


def test_a_version_that_is_named_is_pinned_and_others_are_not():
    assert "torch==2.8.0" in requirements("torch-2.8")
    assert "pandas" in requirements("torch-2.8")
    assert not [line for line in requirements("python-3.13") if line.startswith("python")]


def test_an_unknown_environment_is_named():
    assert versions.main(["torch-1"]) == f"There is no environment 'torch-1'; there are {', '.join(ENVIRONMENTS)}."


@pytest.fixture
def no_python(tmp_path, monkeypatch):
    """A machine without any Python, whose pyenv has none either; the folder of pyenv."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(versions, "FOLDER", tmp_path / "out")
    return tmp_path / "pyenv"


def test_an_environment_of_a_python_that_is_not_there_is_skipped(no_python, capsys):
    assert versions.main(["python-3.13"]) is None
    sentence = "python-3.13: skipped, there is no python3.13 on PATH or in pyenv's folder (PYENV_ROOT)\n"
    assert capsys.readouterr().out == sentence


def test_a_python_is_found_in_pyenvs_folder_also_where_its_script_on_path_finds_none(no_python, tmp_path):
    for folder in (tmp_path / "bin", *(no_python / f"versions/{name}/bin" for name in ("3.13.0", "3.13.0t"))):
        folder.mkdir(parents=True)
    (tmp_path / "bin/python3.13").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "bin/python3.13").chmod(0o755)
    for name in ("3.13.0", "3.13.0t"):  # the latter has no global lock, and few wheels
        (no_python / f"versions/{name}/bin/python3.13").symlink_to(sys.executable)
    assert versions.interpreter("3.13") == str(no_python / "versions/3.13.0/bin/python3.13")
