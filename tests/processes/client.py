"""Stands where `python` would: has the server fork a process with these arguments, and ends as it ends.

It hands over its streams, folder and environment; signals that it gets go on to the process. Only what the standard
library imports quickly is imported here.
"""

import array
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time

FOLDER = os.environ["NBKIT_TESTS_PROCESSES"]
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def connect(seconds: float = 60) -> socket.socket:
    """A connection to the server, which is started if it is not there."""
    end = time.monotonic() + seconds
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(f"{FOLDER}/socket")
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > end:
                raise
            start_server()
            time.sleep(0.05)


def start_server() -> None:
    """Starts the server once: who cannot lock its file finds it started."""
    lock = os.open(f"{FOLDER}/lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return os.close(lock)
    server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")
    with open(f"{FOLDER}/log", "ab") as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        # It inherits the lock and keeps it as long as it runs.
        subprocess.Popen([sys.executable, server, FOLDER], pass_fds=[lock], start_new_session=True, **streams)
    os.close(lock)
    return None


def main() -> int:
    waiting: list[int] = []
    for number in FORWARDED:
        signal.signal(number, lambda number, _: waiting.append(number))
    connection = connect()
    request = {"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
    streams = array.array("i", [0, 1, 2])
    data = json.dumps(request).encode("utf-8", "surrogateescape")
    connection.sendmsg([len(data).to_bytes(4, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    connection.sendall(data)
    with connection.makefile("r") as answers:
        process = int(answers.readline())

        def forward(number: int, _: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

        for number in FORWARDED:
            signal.signal(number, forward)
        for number in waiting:
            forward(number, None)
        return int(answers.readline() or -signal.SIGKILL)


if __name__ == "__main__":
    status = main()
    if status < 0:  # it ended by a signal, and so does this
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
