"""A dependency that is too old is named at import, with what is supported and what to do."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distributions

import pytest

import nbkit
from nbkit.compat import installed
from nbkit.compat.installed import OLDEST, check_versions, own_version, too_old
from tests.repository.test_environment import requirements


def test_the_oldest_versions_are_those_that_pip_accepts():
    declared = {name: requirements()[name].specifier for name in OLDEST}
    assert {name: str(specifier) for name, specifier in declared.items()} == {
        name: f">={oldest}" for name, oldest in OLDEST.items()
    }


@pytest.mark.parametrize("version", ["2.6", "2.6.0", "2.6.0a0+git1234", "2.13.0+cpu", "10.0"])
def test_a_version_that_is_new_enough_is_not_spoken_of(version):
    assert too_old("torch", version) is None


@pytest.mark.parametrize(("name", "version"), [("torch", "2.5.1+cu124"), ("pandas", "2.2.1"), ("ipython", "7.33.0")])
def test_one_sentence_names_the_version_what_is_supported_and_what_to_do(name, version):
    assert too_old(name, version) == (
        f"{name} {version} is installed, and nbkit works with {name} {OLDEST[name]} or newer: "
        f"pip install --upgrade '{name}>={OLDEST[name]}', then restart Python."
    )


def test_what_the_import_needs_raises_and_what_it_does_not_warns(monkeypatch):
    versions = {**OLDEST, "torch": "2.5.1"}
    monkeypatch.setattr(installed, "version", versions.get)
    with pytest.warns(UserWarning, match=r"torch 2\.5\.1 is installed"):
        check_versions()
    versions["pandas"] = "1.5.3"
    with pytest.raises(ImportError, match=r"pandas 1\.5\.3 is installed, and nbkit works with pandas 2\.2\.2 or newer"):
        check_versions()


def test_what_is_not_installed_is_left_to_its_import(monkeypatch):
    monkeypatch.setattr(installed, "version", lambda name: None)  # what a damaged installation says
    check_versions()


def test_a_trace_says_which_nbkit_recorded_it():
    """In a source tree that was never installed it is unknown."""
    with nbkit.optrace() as trace:
        pass
    found = [each.version for each in distributions() if each.name == "nbkit-torch"] or ["unknown"]
    assert trace.meta["versions"]["nbkit"] == own_version() == found[0]


def test_a_source_tree_that_was_never_installed_has_no_known_version(monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installed, "version", absent)
    assert own_version.__wrapped__() == "unknown"


@pytest.mark.cold
def test_import_nbkit_says_it(tmp_path):
    fake = tmp_path / "torch-2.5.1.dist-info"
    fake.mkdir()
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\n")
    source = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import nbkit; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert "UserWarning: torch 2.5.1 is installed, and nbkit works with torch 2.6 or newer: pip install" in done.stderr
    assert done.stdout == "False\n"
