"""Building what is published, with the project's own backend and no network."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def built(kind: str, folder: Path, source: Path = ROOT) -> Path:
    """The wheel or sdist, as `kind` says, that `source` makes in `folder`."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return made


def files(wheel: Path) -> dict[str, bytes]:
    """The contents of a wheel by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def unpacked(sdist: Path, folder: Path) -> Path:
    """The folder of the sources in an sdist, unpacked."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source
