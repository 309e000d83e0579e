"""Tracebacks of the user's errors without the recorder's frames."""

import os
from types import TracebackType

_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def without_our_frames(error: BaseException) -> None:
    """Take the recorder's frames out of the tracebacks of an error and of what it was raised from or during."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _cleaned(one.__traceback__)
            pending += [one.__cause__, one.__context__]


def _cleaned(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        traceback = traceback.tb_next
    place = traceback
    while place is not None:
        place.tb_next = _cleaned_next(place.tb_next)
        place = place.tb_next
    return traceback


def _cleaned_next(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        traceback = traceback.tb_next
    return traceback
