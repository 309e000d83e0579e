"""Gives the tests snapshots as files."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def dumped(tmp_path: Path) -> Callable[..., Path]:
    """Returns a function that pickles data, as torch does, and gives the path."""

    def write(data: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Path:
        path = tmp_path / "snapshot.pickle"
        path.write_bytes(pickle.dumps(data, protocol))
        return path

    return write
