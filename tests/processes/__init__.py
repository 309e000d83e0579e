"""Python processes of the tests: forked from one that has imported torch and nbkit, so that each starts in no time.

`PYTHON` stands in a command where `sys.executable` would: `[*PYTHON, "-c", code]`. What is tested is a process of its
own, with its own arguments, folder, environment and streams; only its imports are done already. A test of a cold start
takes `sys.executable` and the marker `cold`. Kernels start that way too, wherever Jupyter looks for `python3`.
"""

import json
import os
import stat
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = "NBKIT_TESTS_PROCESSES"
PYTHON = [sys.executable, "-I", "-S", str(HERE / "client.py")]


def prepare() -> tempfile.TemporaryDirectory[str]:
    """Makes the folder with the server's socket, a kernel `python3` and a command `python` that fork.

    This process and those that it starts find it by the environment; the server starts when it is first asked, and ends
    with this process.
    """
    folder = tempfile.TemporaryDirectory(prefix="nbkit-tests-")
    place = Path(folder.name)
    kernel = place / "jupyter/kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    argv = [*PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    (place / "bin").mkdir()
    command = place / "bin/python"
    command.write_text(f'#!/bin/sh\nexec {" ".join(PYTHON)} "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    (place / "owner").write_text(str(os.getpid()))
    os.environ[FOLDER] = folder.name
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [f"{place}/jupyter", os.environ.get("JUPYTER_PATH")]))
    return folder
