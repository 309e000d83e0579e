"""Says which installed dependency is too old for nbkit, in one sentence, before something fails for it.

Importing it does so: nbkit imports it first. The versions are read, the packages are not imported.
"""

import re
import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, version

# The oldest versions that nbkit was tried with: those of pyproject.toml, which a test holds to it.
OLDEST = {
    "numpy": "1.26",
    "pandas": "2.2.2",
    "pyarrow": "18.0",
    "torch": "2.6",
    "ipython": "7.34",
    "ipykernel": "6.29",
}
# `import nbkit` itself needs these: with older ones it would fail anyway, and not say why.
NEEDED = ("numpy", "pandas", "pyarrow")


def too_old(name: str, installed: str) -> str | None:
    """Returns the sentence that says that this version of a dependency is too old; None if it is not."""
    oldest = OLDEST[name]
    if _numbers(installed) >= _numbers(oldest):
        return None
    return (
        f"{name} {installed} is installed, and nbkit works with {name} {oldest} or newer: "
        f"pip install --upgrade '{name}>={oldest}', then restart Python."
    )


def _numbers(text: str) -> tuple[int, ...]:
    """Returns the numbers that a version begins with: 2.6.0 of 2.6.0a0+git1234."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


@cache
def own_version() -> str:
    """Returns the version of the installed nbkit, looked up once per process: that reads and parses a file."""
    try:
        return version("nbkit-torch")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


def check_versions() -> None:
    """Warns of each dependency that is too old; raises ImportError if nbkit cannot be imported with it.

    A package that is not installed, or says no version, is left to its import.
    """
    for name in OLDEST:
        try:
            sentence = too_old(name, version(name))
        except (PackageNotFoundError, TypeError):
            continue
        if sentence is not None and name in NEEDED:
            raise ImportError(sentence)
        if sentence is not None:
            warnings.warn(sentence, stacklevel=2)


check_versions()
