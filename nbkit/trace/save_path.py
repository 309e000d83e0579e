"""Whether a trace can be saved at a path, found out before anything runs."""

import tempfile
from pathlib import Path

from nbkit.errors import TraceError
from nbkit.trace.storage import META


def check_save_path(path: Path) -> None:
    """Nothing, if a trace can be written to `path` now; else TraceError."""
    try:
        if path.exists() and not (path / META).is_file():
            raise TraceError(
                f"{path} exists and is not a trace; choose another name, so that nothing of yours is lost."
            )
        folder = next(parent for parent in path.parents if parent.exists())
        # Only an attempt tells: permission bits say nothing for root or on a read-only file system.
        Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=folder)).rmdir()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TraceError(f"Cannot save a trace to {path}: {reason}; choose a place you can write to.") from error
