"""load: open any file nbkit can read; the kind is recognised."""

from os import PathLike
from pathlib import Path

from nbkit.analysis.structure.recognise import recognise
from nbkit.errors import TraceError
from nbkit.readers.registry import reader_of
from nbkit.trace.storage import META
from nbkit.trace.trace import Trace

KINDS = "a Chrome trace, a OneFlow nn.Graph log, a Paddle program or an ONNX model"


def load(path: str | PathLike[str]) -> Trace:
    """The trace in a folder that `Trace.save()` wrote or in a Chrome trace of torch.profiler or nbkit, or the graphs of
    a OneFlow nn.Graph log, of a Paddle program or of an ONNX model, as `nbkit.opgraph()` gives them.

    What it is, is told from its content; texts may be gzipped. Raises TraceError if it is absent, damaged, newer or of
    another kind.
    """
    if not isinstance(path, str | PathLike):
        raise TraceError(f"There is no path {path!r}; give that of a folder of Trace.save() or of a file: {KINDS}.")
    path = Path(path)
    if _is_file(path):
        return _read(path)
    if path.is_dir() and not (path / META).is_file() and (files := _chrome_traces(path)):
        raise TraceError(f"{path} is a folder of {len(files)} Chrome traces; give one of them, such as {files[0]}.")
    return Trace.load(path)


def _read(path: Path) -> Trace:
    trace = reader_of(path)(path)
    return Trace(recognise(trace.frames), trace.meta) if "nodes" in trace.frames else trace


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:  # such as a name that is too long
        raise TraceError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}; give another path.") from error


def _chrome_traces(folder: Path) -> list[Path]:
    return sorted(file for pattern in ("*.json", "*.json.gz") for file in folder.glob(pattern))
