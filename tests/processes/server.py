"""Forks a process for each client, with torch, nbkit and what kernels need imported; ends with the tests' process.

It runs no op and starts no thread, so that a child is as a new process is after these imports. Among them is what the
first optimizer of a process brings (torch._dynamo, 2 s) and the first recording by each verb. A child leaves the
server's loop, runs its program, and ends as a process does but for taking down what was imported.
"""

import array
import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

OWN = {__file__, runpy.__file__, "<frozen runpy>"}
IMPORTED = (
    "torch", "torch._dynamo", "nbkit", "nbkit.magics", "nbkit.views", "nbkit.command_line.main", "IPython",
    "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "ipykernel.inprocess",
    "matplotlib_inline.backend_inline",
)  # fmt: skip


@dataclass
class Request:
    """What a client wants run, and the streams for it."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    streams: list[int]


@dataclass
class Server:
    """One loop: a fork per connection, the end of a child to its client, the end of a client to its child."""

    listener: socket.socket
    owner: int
    children: dict[int, socket.socket] = field(default_factory=dict)

    def serve(self) -> Request:
        """Serves until the owner is gone; returns in each child, with what it has to run."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while is_alive(self.owner):
            ready, _, _ = select.select([self.listener, reader, *self.children.values()], [], [], 2)
            if reader in ready:
                os.read(reader, 4096)
            self.reap()
            for connection in [one for one in self.children.values() if one in ready]:
                self.drop(connection)
            if self.listener in ready and (request := self.fork(self.listener.accept()[0])) is not None:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number in (reader, writer):
                    os.close(number)
                return request
        for process in self.children:
            os.kill(process, signal.SIGKILL)
        sys.exit(0)

    def fork(self, connection: socket.socket) -> Request | None:
        """Forks for a client; the request in the child, None in the server."""
        request = receive(connection)
        process = os.fork()
        if process == 0:
            for one in (self.listener, connection, *self.children.values()):
                one.close()
            return request
        for stream in request.streams:
            os.close(stream)
        self.children[process] = connection
        tell(connection, process)
        return None

    def reap(self) -> None:
        """Tells clients how their processes ended."""
        while self.children:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            connection = self.children.pop(process)
            tell(connection, os.waitstatus_to_exitcode(status))
            connection.close()

    def drop(self, connection: socket.socket) -> None:
        """Kills the process of a client that is gone: a client says nothing after its request."""
        for process in [process for process, one in self.children.items() if one is connection]:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            self.children.pop(process).close()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def tell(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the client is gone, and select says so
        connection.sendall(f"{number}\n".encode())


def receive(connection: socket.socket) -> Request:
    streams = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * streams.itemsize))
    streams.frombytes(ancillary[0][2])
    with connection.makefile("rb") as stream:
        content: dict[str, Any] = json.loads(
            stream.read(int.from_bytes(head, "little")).decode("utf-8", "surrogateescape")
        )
    return Request(content["words"], content["folder"], content["environment"], list(streams))


def become(request: Request) -> None:
    """Gives this process the client's streams, folder, environment and path."""
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.setsid()
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.folder)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(number, "w", closefd=False)), encoding="utf-8", errors=errors,
            line_buffering=number == 2 or "PYTHONUNBUFFERED" in os.environ,
        )
        for number, errors in ((1, "strict"), (2, "backslashreplace"))
    )  # fmt: skip
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def run(words: list[str], path: list[str]) -> None:
    """Runs `-c code`, `-m module` or a script, with the arguments after it, as `python` does."""
    kind, added = words[0], [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    main = sys.modules["__main__"] = ModuleType("__main__")
    if kind == "-m":
        sys.argv, sys.path[:] = words[1:], [os.getcwd(), *added, *path]
        if not hasattr(sys.modules.get(words[1]), "__path__"):
            sys.modules.pop(words[1], None)
        runpy._run_module_as_main(words[1])
    elif kind == "-c":
        sys.argv, sys.path[:] = ["-c", *words[2:]], ["", *added, *path]
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
    elif kind.startswith("-"):
        raise SystemExit(f"A forked process knows no flag {kind}; start sys.executable instead.")
    else:
        file = os.path.abspath(kind)
        sys.argv, sys.path[:] = words, [os.path.dirname(file), *added, *path]
        main.__file__ = file
        exec(compile(Path(file).read_bytes(), file, "exec"), main.__dict__)


def status_of(error: BaseException | None) -> int:
    """The exit status after what the program ended with; says it as `python` does, without the frames of this file."""
    if error is None or (isinstance(error, SystemExit) and error.code is None):
        return 0
    if isinstance(error, SystemExit):
        if not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        return int(error.code) if isinstance(error.code, int) else 1
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in OWN:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def end(status: int) -> NoReturn:
    """Waits for threads, runs exit handlers and flushes; imports are not taken down, which takes long."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


def import_all() -> None:
    """Imports what children need, and hides nbkit from torch.compile, as the first recording of each of them would."""
    for name in IMPORTED:
        importlib.import_module(name)
    with contextlib.suppress(ImportError):  # not everywhere installed; plotly's first figure in a cell takes 2 s for it
        importlib.import_module("nbformat")
    for home in sys.modules["nbkit"]._HOMES:
        if not home.startswith("nbkit.views"):  # plotly asks at its import where it runs
            importlib.import_module(home)
    for name in [name for name in sys.modules if name.startswith("nbkit.")]:
        sys.modules["nbkit.capture.step.compiled"]._hide_module(name)


def main(folder: str) -> None:
    path = sys.path[1:]
    sys.path.insert(0, str(Path(__file__).parents[2]))
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # a kernel ends with its parent, which it learns at import
    import_all()
    gc.freeze()  # a child's garbage collector leaves alone what was imported
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/new")
        listener.listen(64)
        os.rename(f"{folder}/new", f"{folder}/socket")
        request = Server(listener, int(Path(folder, "owner").read_text())).serve()
    become(request)
    error: BaseException | None = None
    try:
        run(request.words, path)
    except BaseException as raised:
        error = raised
    end(status_of(error))


if __name__ == "__main__":
    sys.modules["__server__"] = sys.modules["__main__"]  # which the program's own takes the place of
    main(sys.argv[1])
