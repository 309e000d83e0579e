"""Runs calls again with another number of threads, many at a time: MKL takes milliseconds to change it."""

import torch

from nbkit.capture.calls.state import as_recorded
from nbkit.capture.operators.copies import CallCopies
from nbkit.capture.operators.elsewhere import OTHER_GENERATORS
from nbkit.capture.operators.stable.again import Again, Arguments, apart
from nbkit.capture.operators.stable.beyond import Judge
from nbkit.capture.operators.stable.bits import Kept, is_trusted
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.isolated import threads

# So many calls, or bytes of copies, wait before they run.
MOST_CALLS, MOST_BYTES = 1000, 1 << 26


class ThreadCounts:
    """Keeps copies of calls until they run in another number of threads."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Again, Arguments, list[Kept]]] = []
        self.bytes = 0

    def add(self, again: Again) -> None:
        """Keeps a call that has run; devices with threads of their own do not ask the CPU's."""
        kept = [one.tensor for one in again.expected]
        if not kept or any(tensor.device.type in OTHER_GENERATORS for tensor in kept):
            return
        copies = CallCopies(again.traits, *again.arguments, None, {})
        expected = [Kept((one if is_trusted(one) else one.cpu()).clone()) for one in kept]
        self.waiting.append((again, (copies.args, copies.kwargs), expected))
        tensors = [*all_tensors(copies.args, copies.kwargs), *kept, *kept]  # results and their bits
        self.bytes += sum(tensor.nbytes for tensor in tensors)
        if len(self.waiting) >= MOST_CALLS or self.bytes > MOST_BYTES:
            self.run()

    def run(self) -> None:
        """Runs all that wait; each gets its verdict."""
        waiting, self.waiting, self.bytes = self.waiting, [], 0
        if not waiting:
            return
        before = torch.get_num_threads()
        other = 2 if before == 1 else 1
        what = f"with {other} thread{'s' * (other > 1)} in place of {before}"
        with threads(other):
            for again, arguments, expected in waiting:
                with as_recorded(again.state):
                    results = again.tried(arguments)
                if results is not None:
                    # What an op has written to is not what it read.
                    is_kept = not again.traits.is_writing and apart(results[1], expected) is not None
                    is_far = is_kept and Judge(again.traits, arguments).are_apart(results[1], expected)
                    again.note("threads", [(what, apart(results[1], expected), is_far)])
