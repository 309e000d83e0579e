"""Finds source lines: which frame led to an op, and how its line is written."""

import linecache
import os
import sys
import sysconfig
from functools import cache
from types import CodeType, FrameType

import torch
from torch._ops import OpOverload
from torch.autograd import graph

from nbkit.compat.ipython_versions import cell_label

# A place in code: the code object and the instruction's offset; turned into a line only once the step is over.
CodeLocation = tuple[CodeType, int]
# That of an op: a library's stands with the user's own above it, None where there is none.
OpLocation = CodeLocation | tuple[CodeType, int, CodeLocation | None]
# Whose code is: torch's, Python's or ours; a library's above torch; the user's own.
HIDDEN, LIBRARY, OWN = range(3)

_STDLIB = os.path.join(sysconfig.get_paths()["stdlib"], "")
_PURELIBS = tuple(os.path.join(sysconfig.get_paths()[key], "") for key in ("purelib", "platlib"))
_NBKIT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_HIDDEN = tuple(os.path.join(folder, "") for folder in (os.path.dirname(torch.__file__), _NBKIT))
_INSTALLED = ("/site-packages/", "/dist-packages/", "\\site-packages\\")
# By id, since the hash of a code object is that of all its constants: the code, which keeps its id its own, and answer.
_known: dict[int, tuple[CodeType, int]] = {}
# Where recorders and observers run an op, and torch's function through which they may.
CAPTURE = os.path.join(_NBKIT, "capture", "")
_CALL_CODE = OpOverload.__call__.__code__
ENGINE_CODE = graph._engine_run_backward.__code__  # in which the main thread waits for a backward pass


def is_user_code(code: CodeType) -> bool:
    """Returns whether a frame of this code is the user's (or a library's above torch): not torch's, Python's, ours."""
    return code_kind(code) != HIDDEN


def code_kind(code: CodeType) -> int:
    """Returns whose code it is."""
    known = _known.get(id(code))
    if known is not None:
        return known[1]
    name = code.co_filename
    is_installed = name.startswith(_PURELIBS) or any(map(name.__contains__, _INSTALLED))
    kind = HIDDEN if not is_user_file(name) else LIBRARY if is_installed else OWN
    _known[id(code)] = code, kind
    return kind


def is_user_file(name: str) -> bool:
    """Returns the same of the code of a file."""
    in_stdlib = name.startswith(_STDLIB) and not name.startswith(_PURELIBS)
    generated = name.startswith(("<frozen", "<eval_with_key>", "<string>"))
    return not (name.startswith(_HIDDEN) or in_stdlib or generated)


def is_user_frame(frame: FrameType) -> bool:
    """Returns whether a frame runs user code."""
    return is_user_code(frame.f_code)


def _frame_of(frame: FrameType | None, least: int) -> FrameType | None:
    """Returns the innermost frame at or above `frame` whose code is of such a kind, or a later one."""
    known = _known
    while frame is not None:
        code = frame.f_code
        entry = known.get(id(code))
        if (entry[1] if entry is not None else code_kind(code)) >= least:
            return frame
        frame = frame.f_back
    return None


def user_location(frame: FrameType | None) -> CodeLocation | None:
    """Returns the innermost user code at or above `frame`; None where there is none (an engine thread)."""
    frame = _frame_of(frame, LIBRARY)
    return None if frame is None else (frame.f_code, frame.f_lasti)


def op_location(frame: FrameType | None) -> OpLocation | None:
    """Returns the same and, where that is a library's, the user's own innermost code above it."""
    frame = _frame_of(frame, LIBRARY)
    own = _frame_of(frame, OWN)
    if frame is None or frame is own:
        return None if frame is None else (frame.f_code, frame.f_lasti)
    return frame.f_code, frame.f_lasti, None if own is None else (own.f_code, own.f_lasti)


def node_location(frame: FrameType | None) -> OpLocation | None:
    """Returns the same of an autograd node's op; None where the engine runs the node, not Python code."""
    # Another recording inside this one may have seen the op first.
    while frame is not None and (frame.f_code is _CALL_CODE or frame.f_code.co_filename.startswith(CAPTURE)):
        frame = frame.f_back
    return None if frame is not None and frame.f_code is ENGINE_CODE else op_location(frame)


def location_text(location: CodeLocation) -> str:
    """Returns `Cell In[7], line 3` for a notebook cell, else `path/file.py:12`, relative in the working directory."""
    code, offset = location
    return line_text(code.co_filename, line_of(code, offset))


def code_text(location: CodeLocation) -> str | None:
    """Returns the line of code itself, without the blanks around it; None where nobody has it any more."""
    code, offset = location
    return code_of_line(code.co_filename, line_of(code, offset))


def code_of_line(filename: str, line: int) -> str | None:
    """Returns the same of a line of a file."""
    return linecache.getline(filename, line).strip() or None


def line_text(filename: str, line: int) -> str:
    """Returns the same for a line of a file."""
    if (cell := _cell_name(filename)) is not None:
        return f"{cell}, line {line}"
    return f"{_short_path(filename, os.getcwd())}:{line}"


@cache
def _short_path(path: str, folder: str) -> str:
    """Returns an absolute path relative to `folder`, if it is inside."""
    if not os.path.isabs(path) or os.path.splitdrive(path)[0] != os.path.splitdrive(folder)[0]:
        return path
    relative = os.path.relpath(path, folder)
    return path if relative.startswith(os.pardir) else relative


def line_of(code: CodeType, offset: int) -> int:
    """Returns the line of an instruction. It takes longer the later that stands in the code."""
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            return number
    return code.co_firstlineno


def _cell_name(filename: str) -> str | None:
    # Asked of IPython only if the user already runs it: capture itself must work without.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return None if shell is None else cell_label(shell, filename)
