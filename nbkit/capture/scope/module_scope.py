"""Whether the running op lies in a module that the filters want, as far as that is known while it runs."""

from bisect import bisect_right
from typing import Any

from nbkit.capture.frames.selection import Selection
from nbkit.capture.raw.recording import ACCUMULATE, Recording, current_node, next_sequence_number
from nbkit.capture.step.called_modules import CalledModules


class ModuleScope:
    """Asked before every op of the recording, it answers as the ops frame will: see OpRows._modules().

    `is_above` says that autograd makes the node of an op after the question: torch's observer asks above autograd, a
    dispatch mode below it.
    """

    def __init__(
        self, recording: Recording, modules: CalledModules, selection: Selection, *, is_above: bool = False
    ) -> None:
        self.recording, self.modules, self.is_above = recording, modules, is_above
        self.matches = selection.module_matcher()
        self.wants_outside = selection.modules is None
        self.by_module: dict[int, bool] = {}
        # Of every op of the main thread: autograd's reading when it ran, and the answer.
        self.readings: list[int] = []
        self.answers: list[bool | None] = []
        self.unknown = 0

    def is_wanted(self) -> bool:
        """Whether to compare the running op: what cannot be known yet is compared, and counted as unknown."""
        if self.matches is None:
            return True
        thread, node = self.recording.thread(), current_node()
        call = thread.context[0]
        is_rerun = call >= 0 and self.recording.module_calls[call][2]
        answer = self._of_call(call) if node is None or is_rerun else self._of_node(node)
        if thread is self.recording.main:
            self.readings.append(next_sequence_number())
            self.answers.append(answer)
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

    def _of_node(self, node: Any) -> bool | None:
        """A backward op belongs where its forward op ran (see forward_ops()), and adding to a gradient to its owner."""
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
