"""`make test-versions ONLY="colab torch-2.8"`: makes these environments, and runs nbkit in each of them.

Each is a folder below out/versions, which stays; a torch other than the pinned one may bring gigabytes of CUDA. Needs
a package index. In each the native recorder is built, and run are every verb (smoke.py), the cells of README.md's path,
and the tests that a version can change. An environment of a Python that is not on the machine is skipped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.versions.environments import ENVIRONMENTS, chosen_tests, requirements

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "out/versions"
# Quiet, and without compiling thousands of modules that nobody imports here.
PIP = {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_COMPILE": "0"}


def interpreter(version: str) -> str | None:
    """The Python of that version, on PATH or in pyenv's folder; None where there is none."""
    name = f"python{version}"
    folder = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    places = (shutil.which(name), *map(str, folder.glob(f"versions/{version}.*[0-9]/bin/{name}")))
    return next((place for place in places if place is not None and runs(place)), None)


def runs(python: str) -> bool:
    """Whether this is an interpreter: pyenv also has scripts of that name on PATH, which may find none."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def made(name: str) -> Path | None:
    """The interpreter of an environment, made if it is not there; None where there is no Python to make it with."""
    folder = FOLDER / name
    python, stamp = folder / "bin/python", folder / "made"
    if stamp.exists():
        return python
    version = ENVIRONMENTS[name].get("python")
    maker = interpreter(version) if version else sys.executable
    if maker is None:
        print(f"{name}: skipped, there is no python{version} on PATH or in pyenv's folder (PYENV_ROOT)", flush=True)
        return None
    print(f"{name}: installing", flush=True)
    subprocess.run([maker, "-m", "venv", "--clear", folder], check=True)
    install = [python, "-m", "pip", "install", *requirements(name)]
    subprocess.run(install, check=True, env={**os.environ, **PIP})
    stamp.touch()
    return python


def passes(name: str) -> bool:
    """Whether everything works in an environment, or it is skipped; what it runs says what does not."""
    python = made(name)
    if python is None:
        return True
    shell = {**os.environ, "PYTHONPATH": str(ROOT), "NBKIT_CACHE": str(FOLDER / "recorder"), "OMP_NUM_THREADS": "1"}
    # What draws in a JupyterLab is slow, and all that a version of anywidget is about.
    tier = "" if name.startswith("anywidget") else "not full"
    commands = (
        [python, "-m", "nbkit.capture.native.build"],
        [python, "tests/versions/smoke.py"],
        [python, "-m", "tests.versions.five_minutes"],
        [python, "-m", "pytest", "-q", "-m", tier, "-p", "no:cacheprovider", *chosen_tests(name)],
    )
    print(f"{name}: running", flush=True)
    codes = [subprocess.run(command, cwd=ROOT, env=shell, check=False).returncode for command in commands]
    return not any(codes)


def main(names: list[str]) -> str | None:
    """None if all works; else the sentence that names the environments where something does not."""
    if unknown := [name for name in names if name not in ENVIRONMENTS]:
        return f"There is no environment {unknown[0]!r}; there are {', '.join(ENVIRONMENTS)}."
    failed = [name for name in names or ENVIRONMENTS if not passes(name)]
    return f"test-versions: something fails with {', '.join(failed)}" if failed else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
