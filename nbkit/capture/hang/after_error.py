"""Saves a recording that a distributed error ended, with the dump of its rank, before the job ends."""

import re
import sys

import torch.distributed as dist

from nbkit.capture.hang.dump_ranks import FOLDER, dump_ranks
from nbkit.errors import NbkitError
from nbkit.trace.trace import Trace

# What backends and checks of torch.distributed say, which raise plain RuntimeErrors.
WORDS = re.compile(
    r"\bgloo\b|NCCL|ProcessGroup|monitoredBarrier|mismatch between collectives|[Cc]onnection closed by peer"
)


def is_of_collective(error: BaseException | None) -> bool:
    """Returns whether an error is that of a collective of a job of several processes."""
    if error is None or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() < 2:
        return False
    known = getattr(dist, "DistError", ())
    return isinstance(error, known) or (isinstance(error, RuntimeError) and WORDS.search(str(error)) is not None)


def save_after_error(trace: Trace, error: BaseException | None) -> None:
    """Saves the trace and this rank's dump to nbkit-hang/rank=N where a distributed error ended the recording.

    Says so in a line on stderr and in a note of the trace; what cannot be written is said there, and raises nothing.
    """
    if not is_of_collective(error):
        return
    try:
        command = f"`python -m nbkit hang {FOLDER}`"
        said = f"A distributed error ended this recording: {command} compares the calls of all ranks."
        trace.meta["notes"] = [*trace.meta.get("notes", []), said]
        where = trace.save(FOLDER)
        dump_ranks(FOLDER)
        said = f"the recording and the collectives of this rank are in {where}; {command} compares the ranks"
    except NbkitError as failure:
        said = f"a distributed error ended the recording, and it could not be saved: {failure}"
    except Exception as failure:
        said = f"a distributed error ended the recording, and saving it failed ({type(failure).__name__}: {failure})"
    sys.stderr.write(f"nbkit: {said}\n")
