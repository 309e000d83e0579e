"""The environments keep to what pyproject.toml accepts, and their tests are there."""

from pathlib import Path

import pytest

from tests.test_environment import requirements as declared
from tests.versions.__main__ import main
from tests.versions.environments import ENVIRONMENTS, chosen_tests, requirements

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_pip_would_keep_every_version_of_an_environment(name):
    refused = [
        package for package, version in ENVIRONMENTS[name].items() if version not in declared()[package].specifier
    ]
    assert refused == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_chosen_tests_an_environment_are_there(name):
    assert [path for path in chosen_tests(name) if not (ROOT / path).exists()] == []


def test_a_version_that_is_named_is_pinned_and_others_are_not():
    assert "torch==2.8.0" in requirements("torch-2.8")
    assert "pandas" in requirements("torch-2.8")


def test_an_unknown_environment_is_named():
    assert main(["torch-1"]) == "There is no environment 'torch-1'; there are " + ", ".join(ENVIRONMENTS) + "."
