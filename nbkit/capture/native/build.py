"""Building the native recorder with the machine's C++ compiler, into the user's cache."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from nbkit.capture.native.library import FOLDER, NAME, SOURCES, library_path, load
from nbkit.errors import RecorderError

TORCH = Path(torch.__file__).parent


def build_recorder() -> Path:
    """Where the native recorder lies, which halves what `optrace` adds to a step; compiled now if it is not there yet.

    Takes half a minute, a C++ compiler (CXX, else c++, g++ or clang++) and Python's headers, once for each version of
    torch, Python and nbkit. The library goes to NBKIT_CACHE, else to `nbkit` in XDG_CACHE_HOME or `~/.cache`; `optrace`
    finds it there from now on, `trace.meta["recorder"]` says which recorder was used, and NBKIT_RECORDER=python goes
    back to the Python one, whose traces are the same.

    Raises:
        RecorderError: there is no compiler, or what it builds does not work with this torch.
    """
    path = library_path()
    if not path.exists():
        _compile(path)
    load(path)
    return path


def _compile(path: Path) -> None:
    if sys.platform != "linux":
        raise RecorderError(f"The native recorder is for Linux, this is {sys.platform}; optrace records in Python here.")
    compiler = _compiler()
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    # Moved into place once it is whole: another process may build or load it at the same time.
    with TemporaryDirectory(dir=path.parent.parent) as scratch:
        built = Path(scratch) / path.name
        done = subprocess.run(_command(compiler, built), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RecorderError(f"The native recorder does not compile here ({_first_error(done.stderr)}); optrace records in Python.")
        path.parent.mkdir(exist_ok=True)
        os.replace(built, path)


def _compiler() -> list[str]:
    if given := os.environ.get("CXX"):
        return shlex.split(given)
    found = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if found is None:
        raise RecorderError("The native recorder needs a C++ compiler: install g++ or clang, or name one in CXX; optrace records in Python.")
    return [found]


def _command(compiler: list[str], built: Path) -> list[str]:
    headers = (sysconfig.get_paths()["include"], TORCH / "include", TORCH / "include/torch/csrc/api/include")
    return [
        *compiler,
        *"-std=c++20 -O2 -fPIC -shared -fvisibility=hidden -w".split(),
        f"-DTORCH_EXTENSION_NAME={NAME}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        *(f"-I{folder}" for folder in headers),
        str(FOLDER / SOURCES[0]),
        *("-o", str(built), f"-L{TORCH / 'lib'}", *"-ltorch_python -ltorch -ltorch_cpu -lc10".split()),
    ]


def _first_error(output: str) -> str:
    lines = output.strip().splitlines() or ["no message"]
    return next((line for line in lines if "error" in line), lines[0])
