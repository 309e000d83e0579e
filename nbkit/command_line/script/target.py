"""Target says which code of a script is the step, as `--step` names it."""

import re
from dataclasses import dataclass
from pathlib import Path

from nbkit.errors import OptionError

LINE = re.compile(r"(?P<file>.*):(?P<line>\d+)")
FUNCTION = re.compile(r"(?:(?P<module>[\w.]+):)?(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")
FORMS = "give FUNCTION, MODULE:FUNCTION, FILE:LINE or :LINE (of a loop)."


@dataclass(frozen=True)
class Target:
    """Names the calls of the function `name`, or the body of the loop at `line`.

    It stands in the script if `module` and `file` are null.
    """

    text: str
    name: str | None = None
    line: int | None = None
    module: str | None = None
    file: Path | None = None

    @property
    def is_in_script(self) -> bool:
        return self.module is None and self.file is None


def read_target(text: str, script: Path) -> Target:
    """Returns what `text` names. Raises OptionError if it names nothing, or a file that is not there."""
    if match := LINE.fullmatch(text):
        return Target(text, line=int(match["line"]), file=_file_beside(match["file"], script))
    if match := FUNCTION.fullmatch(text):
        return Target(text, name=match["name"], module=match["module"])
    raise OptionError(f"--step {text!r} names no code; {FORMS}")


def _file_beside(name: str, script: Path) -> Path | None:
    """Returns the file, looked for here and beside the script; None if it is the script."""
    if not name:
        return None
    for path in (Path(name), script.parent / name):
        if path.is_file():
            return None if path.samefile(script) else path.resolve()
    raise OptionError(f"--step {name}: there is no such file here or beside {script.name}; {FORMS}")
