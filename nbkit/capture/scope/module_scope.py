"""Whether the running op lies in a module that the filters want, as far as that is known while it runs.

What was answered of a forward op is found again by the autograd node that it made.
"""

from bisect import bisect_right
from typing import Any

from nbkit.capture.frames.selection import Selection
from nbkit.capture.raw.recording import ACCUMULATE, Recording, current_node, next_sequence_number
from nbkit.capture.step.called_modules import CalledModules


class NodeAnswers:
    """Holds the answer to a question about every op of the main thread, by which that of an autograd node is known.

    `is_above` says that autograd makes the node of an op after the question: torch's observer asks above autograd, a
    dispatch mode below it.
    """

    def __init__(self, recording: Recording, *, is_above: bool) -> None:
        self.recording, self.is_above = recording, is_above
        # Of every op of the main thread: autograd's reading when it ran, and the answer.
        self.readings: list[int] = []
        self.answers: list[bool | None] = []

    def add(self, answer: bool | None) -> None:
        """Notes the answer of the op that is about to run."""
        if self.recording.thread() is self.recording.main:
            self.readings.append(next_sequence_number())
            self.answers.append(answer)

    def of(self, node: Any) -> bool | None:
        """Returns the answer of the forward op whose gradient a node computes; None where it is not known."""
        if type(node) is ACCUMULATE:
            return None
        number = node._sequence_nr()
        if number < self.recording.main.first_sequence:
            return None
        place = bisect_right(self.readings, number)
        if self.is_above:  # the last that began at the number of the node
            return self.answers[place - 1] if place and self.readings[place - 1] == number else None
        place -= type(node).__name__ == "CopySlices"
        return self.answers[place] if 0 <= place < len(self.answers) else None


class ModuleScope:
    """Asked before every op of the recording, it answers as the ops frame will: see OpRows._modules().

    `is_above` as in NodeAnswers: a backward op belongs where its forward op ran (see forward_ops()), and adding to a
    gradient to its owner.
    """

    def __init__(
        self, recording: Recording, modules: CalledModules, selection: Selection, *, is_above: bool = False
    ) -> None:
        self.recording, self.modules = recording, modules
        self.of_nodes = NodeAnswers(recording, is_above=is_above)
        self.matches = selection.module_matcher()
        self.wants_outside = selection.modules is None
        self.by_module: dict[int, bool] = {}
        self.unknown = 0

    def is_wanted(self) -> bool:
        """Whether to compare the running op: what cannot be known yet is compared, and counted as unknown."""
        if self.matches is None:
            return True
        thread, node = self.recording.thread(), current_node()
        call = thread.context[0]
        is_rerun = call >= 0 and self.recording.module_calls[call][2]
        answer = self._of_call(call) if node is None or is_rerun else self.of_nodes.of(node)
        self.of_nodes.add(answer)
        self.unknown += answer is None
        return answer is not False

    def _of_call(self, call: int) -> bool:
        if call < 0:
            return self.wants_outside
        number = self.recording.module_calls[call][0]
        if number not in self.by_module:
            assert self.matches is not None
            self.by_module[number] = self.matches(self.modules.called[number].path)
        return self.by_module[number]
