"""The built recorder: where it lies, and loading it if it is there for exactly this torch, Python and source."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch

from nbkit.capture.cache_folder import cache_folder
from nbkit.errors import RecorderError

NAME = "nbkit_recorder"
FOLDER = Path(__file__).parent / "src"
SOURCES = ("recorder.cpp", *sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.h")))


def library() -> Any | None:
    """The library, if it has been built; None without it, and where NBKIT_RECORDER=python asks for the Python one."""
    if os.environ.get("NBKIT_RECORDER") == "python":
        return None
    path = library_path()
    try:
        return load(path) if path.exists() else None
    except RecorderError:
        return None


@contextmanager
def own_work() -> Iterator[None]:
    """Hides what runs inside, in this thread, from every recording that observes."""
    native = library()
    if native is not None:
        native.begin_own_work()
    try:
        yield
    finally:
        if native is not None:
            native.end_own_work()


def library_path() -> Path:
    """Where the library of this torch, Python and source lies once it is built: below NBKIT_CACHE or ~/.cache."""
    return cache_folder() / _key() / f"{NAME}{EXTENSION_SUFFIXES[0]}"


@cache
def _key() -> str:
    source = b"".join((FOLDER / name).read_bytes() for name in SOURCES)
    revision = (torch.version.git_version or "")[:8]
    return f"torch-{torch.__version__}-{revision}-{sys.implementation.cache_tag}-{sha256(source).hexdigest()[:12]}"


@cache
def load(path: Path) -> Any:
    """The library at `path`. Raises RecorderError if it cannot be used here."""
    loader = ExtensionFileLoader(NAME, str(path))
    spec = spec_from_loader(NAME, loader)
    assert spec is not None
    try:
        module = module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise RecorderError(f"{path} cannot be loaded: {error}; delete it and build the recorder again.") from error
    before = perf_counter_ns()
    if not before <= module.now_ns() <= perf_counter_ns():  # Python calls and ops stand on one clock
        raise RecorderError("The native recorder has another clock than Python here; optrace records in Python.")
    return module
