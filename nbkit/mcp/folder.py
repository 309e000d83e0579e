"""Folder opens the traces below one folder, and nothing outside of it."""

import os
from collections.abc import Iterator
from pathlib import Path

from nbkit import units
from nbkit.errors import OptionError, TraceError
from nbkit.trace.job.ranks import rank_folders
from nbkit.trace.storage import META
from nbkit.trace.trace import Trace
from nbkit.verbs.load import load
from nbkit.views.summary.names import shown

# Traces that stay in memory.
MOST_OPEN = 4
# A sentence names so many traces; so many folders are looked into for them, so deep.
MOST_NAMED, MOST_FOLDERS, DEEPEST = 20, 2000, 4
Stamp = tuple[int, int]


class Folder:
    """Opens traces by their path below `root`; the last few stay open until their files change."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise OptionError(f"{root} is no folder; give --root a folder with traces in it.")
        self.root = root.resolve()
        self._open: dict[Path, tuple[Stamp, Trace]] = {}

    def trace(self, path: str) -> Trace:
        """Returns the trace at `path`. Raises TraceError if it is not below the root, or no trace."""
        place = self._inside(path)
        # Of a path that is too long, too.
        if not os.path.exists(place):
            raise TraceError(f"There is no {shown(path)} below the root; {self._known()}")
        ranks = rank_folders(place)
        if place.is_dir() and not (place / META).is_file() and not ranks:
            raise TraceError(f"{path} is a folder and no trace; {self._known()}")
        stamp = max(map(_stamp, ranks.values())) if ranks else _stamp(place)
        if place not in self._open or self._open[place][0] != stamp:
            self._open.pop(place, None)
            for one in (place, *ranks.values()):
                self._check_links(one, path)
            trace = load(place)
            if len(self._open) >= MOST_OPEN:
                del self._open[next(iter(self._open))]
            self._open[place] = stamp, trace
        return self._open[place][1]

    def _inside(self, path: str) -> Path:
        """Returns where a path leads, links followed. Raises TraceError if that is not below the root."""
        try:
            place = (self.root / path).resolve()
        except (OSError, ValueError, RuntimeError) as error:  # with a zero byte, links in a circle
            raise TraceError("This path cannot be read; give that of a trace below the root.") from error
        if not place.is_relative_to(self.root):
            raise TraceError(f"{shown(path)} is outside of the folder that this server may read; give a path below it.")
        return place

    def _check_links(self, place: Path, path: str) -> None:
        """Raises TraceError if a file of the trace is a link that leads out of the root."""
        files = [*place.iterdir()] if place.is_dir() else []
        if any(not file.resolve().is_relative_to(self.root) for file in files):
            raise TraceError(f"{path} has a link that leads out of the folder that this server may read.")

    def _known(self) -> str:
        names = sorted(self._names())
        if not names:
            return "no folder of Trace.save() is there."
        more = units.and_more(len(names) - MOST_NAMED)
        return f"the traces there are: {', '.join(names[:MOST_NAMED])}{more}."

    def _names(self) -> Iterator[str]:
        """Yields the folders that Trace.save() wrote; links are not followed."""
        for count, (folder, folders, files) in enumerate(os.walk(self.root)):
            here = Path(folder).relative_to(self.root)
            if META in files or rank_folders(Path(folder)):
                yield str(here)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if META in files or len(here.parts) >= DEEPEST:
                folders.clear()
            if count >= MOST_FOLDERS:
                return


def _stamp(place: Path) -> Stamp:
    """Returns what changes when a trace is written anew."""
    known = (place / META if (place / META).is_file() else place).stat()
    return known.st_mtime_ns, known.st_ino
