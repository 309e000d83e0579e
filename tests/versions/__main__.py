"""`make test-versions ONLY="colab torch-2.8"`: makes these environments, and runs nbkit in each of them.

Each is a folder below out/versions, which stays; a torch other than the pinned one may bring gigabytes of CUDA. Needs
a package index. In each run every verb (smoke.py), the cells of README.md's path, and the tests that a version can
change.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.versions.environments import ENVIRONMENTS, chosen_tests, requirements

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "out/versions"
# Quiet, and without compiling thousands of modules that nobody imports here.
PIP = {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_COMPILE": "0"}


def python_of(name: str) -> Path:
    """The interpreter of an environment, made if it is not there."""
    folder, made = FOLDER / name, FOLDER / name / "made"
    python = folder / "bin/python"
    if not made.exists():
        print(f"{name}: installing", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", *requirements(name)]
        subprocess.run(install, check=True, env={**os.environ, **PIP})
        made.touch()
    return python


def passes(name: str) -> bool:
    """Whether everything works in an environment; what it runs says what does not."""
    python = python_of(name)
    shell = {**os.environ, "PYTHONPATH": str(ROOT), "NBKIT_CACHE": str(FOLDER / "recorder"), "OMP_NUM_THREADS": "1"}
    commands = (
        [python, "tests/versions/smoke.py"],
        [python, "-m", "tests.versions.five_minutes"],
        [python, "-m", "pytest", "-q", "-m", "not full", "-p", "no:cacheprovider", *chosen_tests(name)],
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
