"""convert turns Chrome traces of any size into folders of Parquet files, as a function and as a subcommand."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

from nbkit import units
from nbkit.errors import OptionError, TraceError
from nbkit.progress import Progress, duration_text, no_progress
from nbkit.readers.chrome.batch import is_installed
from nbkit.readers.chrome.stored.convert import convert_file
from nbkit.verbs.conversion.ranks import default_folder, own_share, rank_folders
from nbkit.verbs.options.generated import OptionHolder
from nbkit.verbs.options.parser import absolute_path, whole_number
from nbkit.verbs.verb import PROGRAM, Command, Outcome, Verb


def convert(
    path: str | PathLike[str], out: str | PathLike[str] | None = None, executor: Executor | None = None
) -> Path:
    """Writes a Chrome trace, or each one in a folder, as a folder that `nbkit.load()` opens at once; returns that.

    The frames are those that `nbkit.load()` gives of the file. Memory does not grow with the file: one that is larger
    than the memory can be converted. Of a folder of files each becomes `rank=N` in `out`, by the rank that it names.
    `executor` is any of concurrent.futures, such as ProcessPoolExecutor() or Dask's `client.get_executor()`; None
    converts one file after the other. Under `srun` each task converts its share of the files. `out` is a folder beside
    `path` if it is None. Raises TraceError if a file cannot be read or `out` cannot be written; what else is in the
    folder is converted before.
    """
    if not is_installed():
        raise TraceError('Converting needs DuckDB, which is not installed: pip install "nbkit-torch[ranks]".')
    if executor is not None and not hasattr(executor, "submit"):
        raise OptionError(f"executor={executor!r} runs nothing; give one of concurrent.futures, or None.")
    if not isinstance(path, str | PathLike):
        raise TraceError(f"There is no path {path!r}; give that of a Chrome trace, or of a folder of such.")
    path = Path(path)
    folder = default_folder(path) if out is None else Path(out)
    if path.is_file():
        convert_files({str(path): str(folder)}, executor)
    else:
        convert_files(own_share(rank_folders(path, folder)), executor)
    return folder


def convert_files(folders: Mapping[str, str], executor: Executor | None) -> None:
    """Converts each file to its folder; raises TraceError that names those which failed, once all others are done."""
    failed: list[str] = []
    done = 0
    whole = len(folders) > 1 or executor is not None

    def say() -> str:
        return f"converting {units.counted(len(folders), 'file')}, {done:,} done"

    with Progress(say if whole else lambda: "", done=lambda: done / len(folders), tells_whole=whole):
        for result in _results(folders, executor):
            try:
                result()
            except TraceError as error:
                failed.append(str(error))
            done += 1
    if failed:
        others = f" {units.counted(done - len(failed), 'other file')} of {done:,} converted." if done > 1 else ""
        raise TraceError(" ".join(failed) + others)


def _results(folders: Mapping[str, str], executor: Executor | None) -> Any:
    """Yields what returns, or raises, the outcome of each conversion; in the order in which they end."""
    if executor is None:
        for file, folder in folders.items():
            yield lambda file=file, folder=folder: convert_one(file, folder)
        return
    futures: list[Future[None]] = [executor.submit(convert_in_worker, *pair) for pair in folders.items()]
    try:
        yield from (future.result for future in as_completed(futures))
    finally:
        for future in futures:
            future.cancel()


def convert_one(file: str, folder: str) -> None:
    """Converts one file."""
    convert_file(Path(file), Path(folder))


def convert_in_worker(file: str, folder: str) -> None:
    """Converts one file in a process that is one of several, which all have one terminal."""
    with no_progress():
        convert_one(file, folder)


def _add_options(holder: OptionHolder) -> None:
    holder.add_argument(
        "-o", dest="out", type=absolute_path, metavar="FOLDER", help="where to (default: a folder beside PATH)"
    )
    workers = "processes that convert the files of a folder at the same time (default: 1)"
    holder.add_argument("--workers", type=whole_number(1), default=1, metavar="N", help=workers)
    holder.add_argument("path", type=absolute_path, metavar="PATH", help="a Chrome trace, or a folder of such")


def _run(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    begun = monotonic()
    if options.workers > 1 and not options.path.is_file():
        # A process that is forked would share threads of the libraries that have begun here.
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
            out = convert(options.path, options.out, executor)
    else:
        out = convert(options.path, options.out)
    took = duration_text(monotonic() - begun)
    if options.path.is_file():
        return Outcome(f"Converted {options.path.name} to {out} in {took}; open it with nbkit.load({str(out)!r}).")
    all_files = rank_folders(options.path, out)
    share = own_share(all_files)
    of = f" of {len(all_files):,}, the share of this task of srun," if len(share) < len(all_files) else ""
    first, *_, last = [*(Path(folder).name for folder in share.values())] * 2 or ["nothing"] * 2
    return Outcome(
        f"Converted {units.counted(len(share), 'file')}{of} to {out} in {took}: {first} to {last}; "
        f"open one with nbkit.load({str(out / first)!r})."
    )


COMMAND = Command(
    "convert",
    "turn large Chrome traces into folders that open at once",
    "convert trace.json.gz -o trace",
    f"""\
Convert a Chrome trace of torch.profiler, or every one in a folder, to Parquet files that nbkit.load() opens at once.
The result is that of loading the file; memory does not grow with its size.

    {PROGRAM} convert trace.json.gz
        writes the folder trace beside it
    {PROGRAM} convert traces -o job --workers 4
        writes job/rank=0, job/rank=1 ..., four files at a time
    {PROGRAM} convert traces -o job
        under srun, each task of a Slurm job converts its share of the files

It needs DuckDB: pip install "nbkit-torch[ranks]". Exit status: 0; 2 if a file cannot be read, once all others are
converted.""",
    _add_options,
    _run,
)
CONVERT = Verb("convert", command=COMMAND)
