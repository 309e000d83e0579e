"""Finds the op that a record names: only what torch has registered, of libraries that are known, by its exact name."""

import re
from collections.abc import Collection

import torch
from torch._ops import OpOverload

from nbkit.capture.calls.collectives import RUNS
from nbkit.errors import OptionError, TraceError

LIBRARIES = ("aten", "prims", "mkldnn", "mkl", "torchvision", "torchaudio")
# They read or write files, or hand out what an address names.
REFUSED = frozenset({"aten.from_file"})
NAME = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)


def checked_libraries(libraries: Collection[str]) -> tuple[str, ...]:
    """Returns the libraries whose ops may be called, those that are always known first. Raises OptionError."""
    here = {name.partition("::")[0] for name in known_names(anew=True)}
    for name in libraries:
        if name not in here:
            raise OptionError(f"No library {name!r} has registered ops with torch here; import the package that does.")
    return (*LIBRARIES, *libraries)


def registered_op(name: object, libraries: Collection[str] = LIBRARIES) -> OpOverload:
    """Returns the op; nothing is imported for it. Raises TraceError, worded as a reason, if it cannot be called."""
    match = NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise TraceError(f"{str(name)[:60]!r} is no name of an op")
    library, packet, overload = match.groups()
    if name in RUNS:
        libraries = (*libraries, library)
    if library not in libraries:
        raise TraceError(f"{name} is of the library {library!r}, which is not known; name it in libraries= to allow it")
    if f"{library}.{packet}" in REFUSED:
        raise TraceError(f"{name} opens a file, which a replay does not")
    full = f"{library}::{packet}" if overload == "default" else f"{library}::{packet}.{overload}"
    if full not in known_names() and full not in known_names(anew=True):
        raise TraceError(f"{name} does not exist in torch {torch.__version__}")
    op: OpOverload = getattr(getattr(getattr(torch.ops, library), packet), overload)
    return op


_known: frozenset[str] = frozenset()


def known_names(*, anew: bool = False) -> frozenset[str]:
    """Returns the names of all registered ops; `anew` asks for those that a library has brought meanwhile."""
    global _known
    if anew or not _known:
        _known = frozenset(torch._C._dispatch_get_all_op_names())
    return _known
