"""The command line in this process: what it changes, as a process that ends soon may, is put back."""

import builtins
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nbkit.command_line.main import main
from nbkit.command_line.script.rewriting import NAME
from tests.command_line import scripts


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The working directory, with the scripts in it."""
    monkeypatch.chdir(tmp_path)
    files = {"train": scripts.TRAIN, "broken": scripts.BROKEN, "user": scripts.USER, "helpers": scripts.HELPERS}
    for name, source in files.items():
        (tmp_path / f"{name}.py").write_text(source)
    return tmp_path


@pytest.fixture
def nbkit(folder, monkeypatch) -> Callable[..., int]:
    """`nbkit("run", ...)`: the exit status of that command line."""
    monkeypatch.setattr(sys, "argv", ["nbkit"])
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(builtins, NAME, None, raising=False)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.delitem(sys.modules, "helpers", raising=False)

    def status(*words: str) -> int:
        try:
            return main(words)
        except SystemExit as ended:
            return int(ended.code or 0)

    return status
