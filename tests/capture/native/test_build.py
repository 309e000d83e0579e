"""Building and finding the library: what is said where it cannot be built, and that only the fitting one is used."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import nbkit
from nbkit import RecorderError
from nbkit.capture.native import library
from nbkit.capture.native.build import FALLBACK, main
from tests.processes import PYTHON


def recorder_used():
    with nbkit.optrace() as trace:
        torch.ones(1)
    return trace.meta["recorder"]


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path))
    return tmp_path


def test_a_built_recorder_is_used_and_not_built_again(built_recorder):
    changed = built_recorder.stat().st_mtime_ns
    assert nbkit.build_recorder() == built_recorder
    assert built_recorder.stat().st_mtime_ns == changed
    assert recorder_used() == "observer"


def test_without_a_built_one_the_python_recorder_is_used(empty_cache):
    assert recorder_used() == "python"


def test_the_environment_can_ask_for_the_python_recorder(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    assert recorder_used() == "python"


def test_statistics_are_read_in_python():
    with nbkit.optrace(values="stats") as trace:
        torch.ones(1)
    assert trace.meta["recorder"] == "python"


def test_no_compiler_is_one_sentence(empty_cache, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(empty_cache))
    with pytest.raises(RecorderError) as raised:
        nbkit.build_recorder()
    assert str(raised.value) == f"No C++ compiler is found: install g++ or clang, or name one in CXX; {FALLBACK}"


@pytest.mark.parametrize(
    ("compiler", "said"),
    [("no-such-compiler", "no-such-compiler cannot be run: No such file"), ("false", "does not compile: no message")],
)
def test_a_compiler_that_fails_is_one_sentence(compiler, said, empty_cache, monkeypatch):
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(RecorderError, match=said) as raised:
        nbkit.build_recorder()
    assert str(raised.value).endswith(f"; {FALLBACK}")
    assert "\n" not in str(raised.value)
    assert list(empty_cache.rglob("*")) == []
    assert main() == str(raised.value)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(RecorderError, match=r"file cannot be written: File exists; set NBKIT_CACHE; optrace goes on"):
        nbkit.build_recorder()


def test_the_first_error_of_the_compiler_is_shown(empty_cache, monkeypatch):
    script = empty_cache / "compiler"
    script.write_text("#!/bin/sh\necho 'In file x:' >&2\necho 'Python.h: fatal error: no such file' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(RecorderError, match=r"does not compile: Python\.h: fatal error: no such file; optrace"):
        nbkit.build_recorder()


def test_it_is_linked_with_the_runtime_of_torch_whose_exceptions_it_has_to_see(empty_cache, monkeypatch):
    script = empty_cache / "compiler"
    script.write_text(f'#!/bin/sh\necho "$@" > "{empty_cache}/given"\nexit 1\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(RecorderError):
        nbkit.build_recorder()
    given = [word for word in (empty_cache / "given").read_text().split() if "libstdc++" in word]
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libstdc++" in line}
    assert len(given) == 1 and set(given) <= loaded


def test_what_was_built_stands_in_its_place_and_nothing_else_is_left(empty_cache, monkeypatch, tmp_path_factory):
    """A compiler that writes a line of text, which cannot be loaded."""
    script = tmp_path_factory.mktemp("bin") / "compiler"
    script.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho built > "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(RecorderError, match=r"cannot be loaded"):
        nbkit.build_recorder()
    path = library.library_path()
    assert path.read_text() == "built\n"
    assert sorted(empty_cache.rglob("*")) == [path.parent, path]


@pytest.mark.parametrize("name", ["c++", "g++", "clang++"])
def test_a_compiler_is_found_where_none_is_named(name, empty_cache, monkeypatch):
    script = empty_cache / name
    script.write_text('#!/bin/sh\necho "$0: error: no ${1#-std=}" >&2\nexit 1\n')
    script.chmod(0o755)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(empty_cache))
    with pytest.raises(RecorderError) as raised:
        nbkit.build_recorder()
    assert str(raised.value) == f"The native recorder does not compile: {script}: error: no c++20; {FALLBACK}"


def test_a_library_of_other_source_is_not_used(built_recorder, empty_cache, monkeypatch):
    stale = library.library_path().parent.with_name("torch-2.13.0-other") / built_recorder.name
    stale.parent.mkdir()
    stale.write_bytes(built_recorder.read_bytes())
    assert recorder_used() == "python"


def test_the_place_depends_on_torch_python_and_source(monkeypatch):
    before = library.library_path()
    library._key.cache_clear()
    monkeypatch.setattr(library, "SOURCES", ("recorder.cpp",))
    other_source = library.library_path()
    library._key.cache_clear()
    monkeypatch.undo()
    assert other_source.name == before.name
    assert other_source.parent != before.parent == library.library_path().parent
    assert torch.__version__ in before.parent.name
    assert sys.implementation.cache_tag in before.parent.name


def test_a_damaged_library_is_named_and_not_used(empty_cache):
    path = library.library_path()
    path.parent.mkdir()
    path.write_bytes(b"no library")
    assert recorder_used() == "python"
    with pytest.raises(RecorderError, match=r"cannot be loaded: .*; delete it and build the recorder again\.$"):
        nbkit.build_recorder()


def test_the_command_says_where_it_is(built_recorder):
    command = [*PYTHON, "-m", "nbkit.capture.native.build"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"The native recorder is in {built_recorder}\n"
