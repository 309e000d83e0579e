"""dump_ranks writes the flight recorder's dump of this rank, now or whenever a signal comes."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Any

import torch.distributed as dist

from nbkit.errors import OptionError, RecorderError, TraceError
from nbkit.trace.atomic_write import why_not

FOLDER = "nbkit-hang"
FILE, SIDECAR = "flight_recorder.pickle", "dump.json"
ENDING = (signal.SIGTERM, signal.SIGHUP)
SIZES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")


def dump_ranks(folder: str | PathLike[str] = FOLDER, *, on_signal: int | None = None) -> Path:
    """Writes the latest collectives of this process (2,000, if TORCH_FR_BUFFER_SIZE says no other number) to
    `folder/rank=N`, and returns that folder; call it in every process, then `python -m nbkit hang folder`.

    Args:
        folder: shared by all ranks, or one of each host, to be copied together later.
        on_signal: writes nothing now, but whenever this signal comes, such as signal.SIGUSR1, also while the main
            thread waits in a collective. A handler that the signal has is still called; SIGTERM and SIGHUP without one
            end the process after the dump, as they do by themselves: torchrun ends the other ranks by SIGTERM.

    Raises:
        OptionError: outside of a job of several processes, or where no handler can be installed: in another thread than
            the main one.
        RecorderError: if torch records no collectives here.
        TraceError: if the folder cannot be written.
    """
    path = Path(folder).absolute() / f"rank={_rank()}"
    _dump_function()
    if on_signal is None:
        return _write(path)
    if current_thread() is not main_thread():
        raise OptionError(
            "dump_ranks(on_signal=...) is called in a thread; Python takes handlers in the main one alone."
        )
    try:
        _install(signal.Signals(on_signal), path)
    except (ValueError, OSError) as error:
        raise OptionError(
            f"on_signal={on_signal!r} cannot be handled ({error}); give such as signal.SIGUSR1."
        ) from error
    return path


def _rank() -> int:
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    if (text := os.environ.get("RANK", "")).isdecimal():
        return int(text)
    raise OptionError("This process has no rank: call dump_ranks() after torch.distributed.init_process_group().")


def _dump_function() -> Callable[[bool, bool, bool], bytes]:
    """Returns what dumps this process: of all collectives, with stacks, also those that have ended."""
    if next((os.environ[name] for name in SIZES if name in os.environ), "") == "0":
        raise RecorderError(f"torch's flight recorder is off: start the job without {SIZES[0]}=0.")
    private: Any = sys.modules.get("torch._C._distributed_c10d")
    is_nccl = dist.is_available() and dist.is_initialized() and "nccl" in dist.get_backend()
    names = ("_dump_nccl_trace", "_dump_fr_trace") if is_nccl else ("_dump_fr_trace",)
    found = next((getattr(private, name) for name in names if hasattr(private, name)), None)
    if found is None:
        raise RecorderError("This version of torch dumps no flight recorder for this backend; torch 2.9 and later do.")
    return found  # type: ignore[no-any-return]


def _write(path: Path) -> Path:
    about = {
        "file": FILE,
        "rank": _rank(),
        "world_size": dist.get_world_size() if dist.is_initialized() else None,
        "host": socket.gethostname(),
        "dumped_ns": time.time_ns(),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, data in ((FILE, _dump_function()(True, True, False)), (SIDECAR, json.dumps(about).encode())):
            partial = path / f".{name}.{os.getpid()}"
            partial.write_bytes(data)
            partial.replace(path / name)
    except OSError as error:
        raise TraceError(f"Cannot write the dump to {path}: {why_not(path, error)}") from error
    return path


def _install(number: signal.Signals, path: Path) -> None:
    """Has a thread dump when the signal comes: Python runs handlers in the main thread, which may wait in C++."""
    before = signal.getsignal(number)

    def handle(*args: Any) -> None:
        if callable(before):
            before(*args)

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.signal(number, handle)
    # The C part of each handler writes the number of its signal there, whichever thread it interrupts.
    forward = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def serve() -> None:
        while data := reader.recv(64):
            if forward != -1:
                os.write(forward, data)
            if number in data:
                try:
                    sys.stderr.write(f"nbkit: this rank's collectives are in {_write(path)}\n")
                except Exception as error:  # the job goes on: there is nobody to raise it to
                    sys.stderr.write(f"nbkit: {error}\n")
                if number in ENDING and before is signal.SIG_DFL:
                    sys.stderr.flush()
                    os._exit(128 + number)

    _SOCKETS.append(writer)
    Thread(target=serve, name="nbkit dump_ranks", daemon=True).start()


# Closed only at the end of the process: a handler may write to them until then.
_SOCKETS: list[socket.socket] = []
