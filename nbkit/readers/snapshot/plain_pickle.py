"""Loads pickles of plain data: dicts, lists, tuples, texts, numbers; no code of the file can run."""

import gzip
import mmap
import pickle
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn, cast

from nbkit.errors import TraceError
from nbkit.readers.snapshot.opcodes import RefusedPickleError, check_opcodes
from nbkit.readers.text_file import GZIP, cannot_read

EXPECTED = "expected a memory snapshot that torch.cuda.memory._dump_snapshot() wrote"
# Stacks repeat, so that snapshots shrink to a tenth or less; beyond this a file is made to fill a disk.
MOST_UNPACKED = 400
PIECE_BYTES = 1 << 20


class PlainUnpickler(pickle.Unpickler):
    """Unpickles plain data, and refuses whatever has a name that would be looked up."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Raises RefusedPickleError for any class or function."""
        raise RefusedPickleError(f"it names {module}.{name}, which is no plain data and could run code")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Raises RefusedPickleError for what is outside the file."""
        raise RefusedPickleError("it refers to what is outside the file")


def load_plain(path: Path, expected: str = EXPECTED) -> Any:
    """Returns the data of a pickle, gzipped or not. Raises TraceError if it is cut off, damaged or no plain data.

    All opcodes are checked before the first of them runs. `expected` says what the file should have been.
    """
    try:
        with path.open("rb") as file, _unpacked(file, path.stat().st_size) as pickled:
            _check(pickled)
            return PlainUnpickler(pickled).load()
    except RefusedPickleError as error:
        raise TraceError(f"{path} cannot be read: {error}; {expected}.") from error
    except EOFError as error:
        raise TraceError(f"{path} is cut off; copy it again whole, or dump it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path} has damaged gzip data ({error}); copy it again.") from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except MemoryError as error:
        raise TraceError(f"{path} needs more memory than there is, or is damaged; {expected}.") from error
    except (
        Exception
    ) as error:  # of a damaged pickle anything: an unhashable key, a text that is no UTF-8, an empty stack
        raise TraceError(f"{path} is a damaged pickle ({type(error).__name__}: {error}); {expected}.") from error


def _check(file: IO[bytes]) -> None:
    try:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file cannot be mapped
        raise RefusedPickleError("it is empty") from None
    with data:
        check_opcodes(data)


@contextmanager
def _unpacked(file: IO[bytes], size: int) -> Iterator[IO[bytes]]:
    """Yields the file, or one on disk with what its gzip data hold."""
    head = file.read(len(GZIP))
    file.seek(0)
    if head != GZIP:
        yield file
        return
    with TemporaryFile() as plain, gzip.GzipFile(fileobj=file) as packed:
        while piece := packed.read(PIECE_BYTES):
            plain.write(piece)
            if plain.tell() > MOST_UNPACKED * max(size, PIECE_BYTES):
                raise RefusedPickleError(f"its gzip data hold more than {MOST_UNPACKED} times their size")
        plain.seek(0)
        yield cast(IO[bytes], plain)
