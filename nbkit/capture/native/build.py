"""Building the native recorder with the machine's C++ compiler, into the user's cache.

`python -m nbkit.capture.native.build` does it from a shell.
"""

import os
import re
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
FALLBACK = "optrace goes on recording in Python."


def build_recorder() -> Path:
    """Where the native recorder lies, under which a step of small ops takes half of its time; built if need be.

    Building takes half a minute, a C++ compiler (CXX, else c++, g++ or clang++) and Python's headers, once for each
    version of torch, Python and nbkit. The library goes below NBKIT_CACHE, else `~/.cache/nbkit` (or XDG_CACHE_HOME).
    `optrace` uses it from now on where it fits; `trace.meta["recorder"]` says which recorder was used.
    NBKIT_RECORDER=python goes back to the one in Python, whose frames are the same but for what torch does otherwise
    under a dispatch mode.

    Raises:
        RecorderError: there is no compiler, no place, or what it builds does not work with this torch.
    """
    path = library_path()
    try:
        if not path.exists():
            _compile(path)
    except OSError as error:
        where = path.parent.parent
        raise RecorderError(f"{where} cannot be written: {error.strerror}; set NBKIT_CACHE; {FALLBACK}") from error
    load(path)
    return path


def _compile(path: Path) -> None:
    if sys.platform != "linux":
        raise RecorderError(f"The native recorder is for Linux, and this is {sys.platform}; {FALLBACK}")
    compiler = _compiler()
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    # Moved into place once it is whole: another process may build or load it at the same time.
    with TemporaryDirectory(dir=path.parent.parent) as scratch:
        built = Path(scratch) / path.name
        try:
            done = subprocess.run(_command(compiler, built), capture_output=True, text=True, check=False)
        except OSError as error:
            raise RecorderError(f"{compiler[0]} cannot be run: {error.strerror}; {FALLBACK}") from error
        if done.returncode:
            raise RecorderError(f"The native recorder does not compile: {_first_error(done.stderr)}; {FALLBACK}")
        path.parent.mkdir(exist_ok=True)
        os.replace(built, path)


def _compiler() -> list[str]:
    if named := os.environ.get("CXX"):
        return shlex.split(named)
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        raise RecorderError(f"No C++ compiler is found: install g++ or clang, or name one in CXX; {FALLBACK}")
    return [compiler]


def _command(compiler: list[str], built: Path) -> list[str]:
    headers = (sysconfig.get_paths()["include"], TORCH / "include", TORCH / "include/torch/csrc/api/include")
    return [
        *compiler,
        *"-std=c++20 -O2 -DNDEBUG -Wall -Wno-psabi -fPIC -shared -fvisibility=hidden".split(),
        f"-DTORCH_EXTENSION_NAME={NAME}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        *(word for folder in headers for word in ("-isystem", str(folder))),  # their warnings are not ours
        str(FOLDER / SOURCES[0]),
        *_runtime(),
        *("-o", str(built), f"-L{TORCH / 'lib'}", *"-ltorch_python -ltorch -ltorch_cpu -lc10".split()),
    ]


def _runtime() -> list[str]:
    """The C++ runtime that torch has loaded. With one of its own the recorder would not see that torch throws."""
    try:
        mapped = Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        return []
    return re.findall(r"/.*/libstdc\+\+\.so\.\d[\d.]*$", mapped, re.MULTILINE)[:1]


def _first_error(output: str) -> str:
    lines = output.strip().splitlines() or ["no message"]
    return next((line for line in lines if "error:" in line), lines[0])


def main() -> str | None:
    """None after saying where the recorder lies, or the sentence that says why there is none."""
    try:
        sys.stdout.write(f"The native recorder is in {build_recorder()}\n")
    except RecorderError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
