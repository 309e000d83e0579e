"""Loads a large Chrome trace by way of a folder in the cache, which is made once."""

import re
from hashlib import sha256
from pathlib import Path

from nbkit.capture.cache_folder import cache_folder
from nbkit.compat.installed import own_version
from nbkit.errors import TraceError
from nbkit.readers.chrome.batch import is_installed
from nbkit.readers.chrome.reader import CHROME
from nbkit.readers.chrome.stored.convert import convert_file
from nbkit.readers.registry import reader_of
from nbkit.schema import SCHEMA_VERSION
from nbkit.trace.storage import META, check_save_path
from nbkit.trace.trace import Trace
from nbkit.verbs.conversion.ranks import default_folder

# From this size on a file is converted before it is loaded; of a packed file so much less.
LARGE_BYTES, PACKED = 200_000_000, 10


def converted_once(path: Path) -> Trace | None:
    """Returns the trace of a large Chrome trace by way of a folder in the cache, made where it is not there yet.

    None for other files, and where the cache cannot be written.
    """
    about = path.stat()
    least = LARGE_BYTES // PACKED if path.suffix == ".gz" else LARGE_BYTES
    if about.st_size < least or not is_installed() or reader_of(path) is not CHROME:
        return None
    key = f"{path.resolve()} {about.st_size} {about.st_mtime_ns} {SCHEMA_VERSION} {own_version()}"
    name = re.sub(r"[^\w.-]", "_", default_folder(path).name)[:60]
    folder = cache_folder() / "traces" / f"{name}-{sha256(key.encode()).hexdigest()[:16]}"
    if not (folder / META).is_file():
        try:
            check_save_path(folder)
        except TraceError:
            return None
        convert_file(path, folder)
    trace = Trace.load(folder)
    note = f"The file was converted once, to {folder}, which is read in its place while the file stays as it is."
    return Trace(trace.frames, {**trace.meta, "notes": [*trace.meta["notes"], note]})
