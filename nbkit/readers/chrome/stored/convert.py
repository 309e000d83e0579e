"""Converts one Chrome trace to a folder, as `Trace.save()` of what the reader gives would write it."""

import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from nbkit.errors import TraceError, first_line
from nbkit.progress import Progress
from nbkit.readers.chrome.collectives import process_meta
from nbkit.readers.chrome.events import ChromeEvents
from nbkit.readers.chrome.reader import Reading, read_chrome_trace
from nbkit.readers.chrome.stored.spool import Spool
from nbkit.readers.chrome.stored.windows import Windows
from nbkit.readers.chrome.stored.writer import OpsWriter
from nbkit.trace.storage import arrow_table, replacing, write_meta

LOOSE = "arrows to backward ops that lack an op at one end"


def convert_file(path: Path, out: Path) -> Path:
    """Writes the trace of a Chrome trace file to the folder `out`; returns that.

    Memory does not grow with the file, but for one that cannot be laid out in parts: such as one of several ranks that
    share a process id, or one that nbkit wrote. Raises TraceError as the reader does, or if `out` cannot be written.
    """
    import duckdb

    try:
        if not _in_parts(path, out):
            read_chrome_trace(path).save(out)
    except (OSError, duckdb.Error) as error:
        reason, place = first_line(error).rstrip("."), tempfile.gettempdir()
        raise TraceError(
            f"Cannot convert {path}: {reason}; free space in {place}, or set TMPDIR to another folder."
        ) from error
    return out


def _in_parts(path: Path, out: Path) -> bool:
    """Converts a file part by part; returns False, and has written nothing, where it cannot be laid out so."""
    with tempfile.TemporaryDirectory(prefix="nbkit-") as folder:
        spool = Spool(Path(folder))
        with spool:
            reading = Reading(path, take=spool.take)
            reading.run()
            events = reading.events
            if isinstance(events, ChromeEvents):
                spool.drain(events)
        if isinstance(events, ChromeEvents) and spool.rows:
            windows = Windows(spool, events)
            try:
                if windows.why_not() is None:
                    _write(windows, reading, events, spool, out)
                    return True
            finally:
                windows.close()
    return False


def _write(windows: Windows, reading: Reading, events: ChromeEvents, spool: Spool, out: Path) -> None:
    reading.refuse_other_kinds()
    main = events.columns.main_thread()
    main = windows.first_thread() if main is None else main
    with replacing(out) as partial, OpsWriter(partial, events, windows.known(), main, reading.around) as ops:
        done = lambda: min(ops.count / max(spool.rows, 1), 1.0)  # noqa: E731
        with Progress(lambda: f"linking {reading.path.name}: {ops.count:,} ops", done=done):
            for window in windows:
                ops.write(window)
        names = ["ops"]
        if (memory := ops.memory()) is not None:
            pq.write_table(arrow_table("memory", memory), partial / "memory.parquet", use_dictionary=False)
            names.append("memory")
        if (collectives := ops.collectives()) is not None:
            pq.write_table(arrow_table("collectives", collectives), partial / "collectives.parquet")
            names.append("collectives")
        if loose := spool.most_arrows - ops.linked:
            events.skipped[LOOSE] += loose
        events.notes += windows.notes()
        meta = reading.meta(events, ops.devices, ops.end_us) | process_meta(reading.around, ops.origin_ns)
        write_meta(partial, names, meta)
