"""Tells whose error ended a step, and cleans tracebacks of the user's errors of the recorder's frames."""

import re
from linecache import getline
from opcode import opmap
from traceback import walk_tb
from types import TracebackType

from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.source import CAPTURE, is_user_file
from nbkit.errors import NbkitError, is_own_file, place_in_nbkit

FROM_TORCH = (RuntimeError, IndexError, TypeError, ValueError)
RAISING = {opmap["RAISE_VARARGS"], opmap["RERAISE"]}
ANYWHERE = (RecursionError, MemoryError)  # the step brings them about, and any line may raise them
_CALLS = ("__torch_dispatch__", "__torch_function__")
# Lines of ours that hand on a call of the step: what comes out of one is the step's.
_HANDS_ON = re.compile(
    r"(?<![\w.])(?:func|run|function|exec|eval)\(|PyObject_Call\(|\.(?:before|dispatch)\(|\)\(\*args"
)


def came_from_op(error: BaseException, recording: Recording) -> bool:
    """Returns whether an error, or what it was raised from or during, was raised inside a recorded call.

    What torch's observer reports leaves no frame in the traceback, and has no message: there it is an error of torch's
    types that no Python line raised, with no op after the one that failed.
    """
    failed = recording.failed_slot
    is_last = recording.native is not None and failed is not None and failed + 1 >= recording.ops.row_count
    if is_last and isinstance(error, FROM_TORCH) and not _raised_by_python(error):
        return True
    for linked in _chain(error):
        for frame, _ in walk_tb(linked.__traceback__):
            if frame.f_code.co_name in _CALLS and frame.f_code.co_filename.startswith(CAPTURE):
                return True
    return False


def _raised_by_python(error: BaseException) -> bool:
    """Returns whether the innermost frame was at a raise statement."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry is not None and entry.tb_frame.f_code.co_code[entry.tb_lasti] in RAISING


def failed_at(error: BaseException) -> str | None:
    """Returns the line of nbkit whose own failure ended the step; None where the error is the user's, or torch's.

    An error is ours if no code of the user, or of a library, stands in its traceback below our innermost line, and that
    line does not hand on a call of the step. Our sentences (NbkitError) are no failures.
    """
    if not isinstance(error, Exception) or isinstance(error, (NbkitError, *ANYWHERE)):
        return None
    if isinstance(error.__cause__, NbkitError):  # as a magic says it
        return None
    ours = ""
    for frame, line in walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if is_own_file(name):
            ours = getline(name, line)
        elif is_user_file(name):
            ours = ""
    return place_in_nbkit(error) if ours and not _HANDS_ON.search(ours) else None


def without_our_frames(error: BaseException) -> None:
    """Takes the recorder's frames out of the tracebacks of an error and of what it was raised from or during."""
    for linked in _chain(error):
        linked.__traceback__ = _cleaned(linked.__traceback__)


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending:
        linked = pending.pop()
        if linked is not None and not any(linked is earlier for earlier in chain):
            chain.append(linked)
            pending += [linked.__cause__, linked.__context__]
    return chain


def _cleaned(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(CAPTURE):
        traceback = traceback.tb_next
    entry = traceback
    while entry is not None:
        entry.tb_next = _cleaned_next(entry.tb_next)
        entry = entry.tb_next
    return traceback


def _cleaned_next(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(CAPTURE):
        traceback = traceback.tb_next
    return traceback
