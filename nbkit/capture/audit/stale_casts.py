"""Notes weights that a step of an optimizer has moved, and of which a block of autocast keeps the cast from before."""

import ast
import linecache
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any
from weakref import ref

import torch
from torch import Tensor

from nbkit.capture.calls.autocast_cache import cached_casts
from nbkit.capture.raw.source import is_user_frame, line_text


class StaleCasts:
    """Looks at each step of an optimizer; `noted` has the ids of weights read so, `source` the line of the block."""

    def __init__(self) -> None:
        self.last: dict[int, Any] = {}  # the memory of the casts at the step before, by the id of the weight
        self.noted: set[int] = set()
        self.source: str | None = None

    def before_step(self, parameters: Iterable[Tensor]) -> None:
        """Notes those whose gradients come from a cast that was there before the last step."""
        casts = {id(weight): (weight, cast) for weight, cast, _ in cached_casts(parameters)}
        for key, (weight, cast) in casts.items():
            is_kept = key in self.last and self.last[key]() is cast.untyped_storage()
            if is_kept and weight.grad is not None and not torch.equal(cast, weight.detach().to(cast.dtype)):
                self.noted.add(key)
        self.last |= {key: ref(cast.untyped_storage()) for key, (_, cast) in casts.items()}
        if self.noted and self.source is None:
            self.source = _line_of_block(sys._getframe())


def _line_of_block(frame: FrameType | None) -> str | None:
    """Returns the line of the innermost block of autocast around what runs, as in ops.source; null if unknown."""
    while frame is not None:
        name, line = frame.f_code.co_filename, frame.f_lineno
        if is_user_frame(frame) and (text := "".join(linecache.getlines(name))):
            blocks = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.With | ast.AsyncWith)]
            around = [one for one in blocks if one.lineno <= line <= (one.end_lineno or 0)]
            lines = [one.lineno for one in around if "autocast" in "".join(map(ast.unparse, one.items))]
            if lines:
                return line_text(name, max(lines))
        frame = frame.f_back
    return None
