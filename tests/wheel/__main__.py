"""`make wheel-check`: README.md's install command in an empty environment, then nbkit used from an empty folder there.

Needs a package index. Torch is the pinned one, as in the tests; all else is what pip chooses today.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.docs.readme import PATH, cells, commands
from tests.wheel.building import ROOT

USE = Path(__file__).with_name("use.py")
# What would let this repository, or a recorder that is built already, stand in for what is installed.
FOREIGN = ("PYTHONPATH", "NBKIT_RECORDER", "NBKIT_CACHE")
# Quiet, and without compiling the thousands of modules of torch that nobody imports here.
PIP = {"PIP_QUIET": "2", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_COMPILE": "0"}


def environment(folder: Path) -> dict[str, str]:
    """The variables of a shell in which the environment in `folder` is active."""
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    path = os.pathsep.join((str(folder / "venv/bin"), kept["PATH"]))
    own = {"PATH": path, "VIRTUAL_ENV": str(folder / "venv"), "NBKIT_CACHE": str(folder / "cache")}
    return kept | own | PIP | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}


def check(folder: Path) -> None:
    """Install and use nbkit below `folder`; raises CalledProcessError if any of it fails."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    shell = environment(folder)
    for command in commands(PATH):
        print(f"$ {command}", flush=True)
        subprocess.run(command, shell=True, cwd=ROOT, env=shell, check=True)
    print(f"installed in {time.perf_counter() - started:.0f} s", flush=True)
    (folder / "cells.json").write_text(json.dumps(cells()), encoding="utf-8")
    (folder / "empty").mkdir()
    used = [folder / "venv/bin/python", "-I", shutil.copy(USE, folder), folder / "cells.json"]
    subprocess.run(used, cwd=folder / "empty", env=shell, check=True)
    print(f"wheel-check: all holds, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="nbkit-wheel-") as name:
        check(Path(name))
