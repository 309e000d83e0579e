"""What is costly to make and the same for all tests is made once per run, by the worker that first asks for it."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from tests.processes import FOLDER


def once(name: str, make: Callable[[], bytes]) -> bytes:
    """What `make` gives, kept below `name` until the run ends; a worker that asks meanwhile waits for it."""
    folder = Path(os.environ[FOLDER], "made")
    folder.mkdir(exist_ok=True)
    path = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            content = make()
            path.with_suffix(".new").write_bytes(content)
            path.with_suffix(".new").rename(path)
        return path.read_bytes()
