"""Looks at the targets of losses of classes while a step runs: which tokens never count, how many are ignored."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from nbkit.capture.audit.measures import has_plain_values
from nbkit.capture.raw.recording import Recording
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.step.function_mode import ApiMode
from nbkit.compat.torch_versions import innermost_saved_tensors_hooks
from nbkit.findings.training.facts import Blank, Padded, Targets

Fact = TypeVar("Fact", Targets, Blank, Padded)
LOSSES: tuple[Callable[..., Any], ...] = (F.cross_entropy, F.nll_loss)
# From the result of cross_entropy to the node of its nll_loss; more stand between with label smoothing.
MOST_NODES = 16
# Lookups of one step that may hold the ids of its targets.
MOST_LOOKUPS = 16


class TargetAudit:
    """Looks at what losses of classes were given, by what autograd keeps of it, while installed."""

    def __init__(self, recording: Recording, api: ApiMode) -> None:
        self.recording, self.api = recording, api
        self.lookups: list[Tensor] = []
        self.seen: list[Targets] = []  # with rows of recording.ops, as the following
        self.blanks: list[Blank] = []
        self.padded: list[Padded] = []

    def install(self) -> None:
        self.api.watched.update(dict.fromkeys(LOSSES, self._met))
        self.api.watched[F.ctc_loss] = self._aligned
        self.api.watched[F.embedding] = self._looked_up

    def _looked_up(self, result: Any, slot: int, module_call: int) -> None:
        node = _node(result)
        if node is not None and node.name() == "EmbeddingBackward0" and result.dim() == 3:
            timed_isolated(self.recording, lambda: self._keep(node, result, slot), self._trouble)

    def _keep(self, node: Any, result: Tensor, slot: int) -> None:
        if not has_plain_values(node._saved_indices):
            return
        ids = node._saved_indices.detach()
        self.lookups = [*self.lookups[1 - MOST_LOOKUPS :], ids]
        padding = int(np.int64(np.uint64(node._saved_padding_idx)))
        if padding < 0 or not ids.numel():
            return
        is_padding = ids == padding
        at_end, count = (int(one.sum()) for one in (is_padding[:, -1], is_padding))
        if at_end and not is_padding[:, 0].any():
            is_zero = not result.detach()[is_padding].any()
            self.padded.append(Padded(slot, len(ids), at_end, count, ids.numel(), is_zero))

    def _aligned(self, result: Any, slot: int, module_call: int) -> None:
        if _node(result) is not None:
            timed_isolated(self.recording, lambda: self._count_blanks(result, slot), self._trouble)

    def _count_blanks(self, result: Tensor, slot: int) -> None:
        node = next((one for one in _nodes(result.grad_fn) if one.name().startswith("CtcLoss")), None)
        if node is None or not has_plain_values(node._saved_targets):
            return
        labels, blank = node._saved_targets.detach().cpu(), int(node._saved_blank)
        lengths = [int(one) for one in node._saved_target_lengths]
        within = [row[:size] for row, size in zip(labels, lengths, strict=True)] if labels.dim() == 2 else [labels]
        count = sum(int((row == blank).sum()) for row in within)
        if count:
            self.blanks.append(Blank(slot, blank, count, sum(lengths)))

    def _met(self, result: Any, slot: int, module_call: int) -> None:
        if _node(result) is not None:
            timed_isolated(self.recording, lambda: self._look(result, slot), self._trouble)

    def _look(self, result: Tensor, slot: int) -> None:
        node = next((one for one in _nodes(result.grad_fn) if one.name().startswith("NllLoss")), None)
        if node is None or not has_plain_values(node._saved_target):
            return
        target = node._saved_target.detach().cpu().numpy()
        # Autograd keeps it as a number without a sign.
        ignore_index = int(np.int64(np.uint64(node._saved_ignore_index)))
        counts = target != ignore_index
        ignored = int((~counts).sum())
        token, inside = None, 0
        for ids in reversed(self.lookups) if 0 < ignored < target.size else ():
            if (found := uncounted(ids.cpu().numpy(), target.reshape(-1), counts.reshape(-1))) is not None:
                token, inside = found
                break
        self.seen.append(Targets(slot, target.size, ignored, result.dim() == 0, token, inside))
        self.lookups = []

    def _trouble(self, error: Exception) -> None:
        self.recording.skip(f"targets not looked at ({type(error).__name__})")

    def targets(self, op_ids: np.ndarray) -> tuple[list[Targets], list[Blank], list[Padded]]:
        """Returns what was seen; `op_ids` holds one per slot of recording.ops."""
        return _placed(self.seen, op_ids), _placed(self.blanks, op_ids), _placed(self.padded, op_ids)


def _placed(seen: Sequence[Fact], op_ids: np.ndarray) -> list[Fact]:
    return [one._replace(op_id=int(op_ids[one.op_id])) for one in seen if one.op_id < len(op_ids)]


def _node(result: Any) -> Any:
    """Returns the node of a result; null where hooks would have to bring back what it keeps, as of a checkpoint."""
    return result.grad_fn if isinstance(result, Tensor) and innermost_saved_tensors_hooks() is None else None


def _nodes(node: Any) -> Iterator[Any]:
    """Yields the first nodes of a graph from a result on."""
    pending = [node]
    for _ in range(MOST_NODES):
        if pending:
            yield (node := pending.pop(0))
            pending += [following for following, _ in node.next_functions if following is not None]


def uncounted(ids: np.ndarray, target: np.ndarray, counts: np.ndarray) -> tuple[int, int] | None:
    """Returns the token of `ids` (rows, length) that is the only one ignored wherever it stands, and how often it
    stands between tokens that count; null if there is none, or if it may well be padding.

    `target` holds the next token of each, with one less in a row or an ignored one at its end. Padding stands at the
    begin or end of rows; the longest row of a batch has none.
    """
    rows, length = ids.shape
    width, left = divmod(target.size, rows)
    if left or width not in (length, length - 1) or length < 2:
        return None
    following, target, counts = ids[:, 1:], target.reshape(rows, width), counts.reshape(rows, width)
    target, counts = target[:, : length - 1], counts[:, : length - 1]
    ignored = np.unique(following[~counts])
    if len(ignored) != 1 or not counts.any() or not (target == following)[counts].all():
        return None
    is_token = following == ignored[0]
    if (is_token & counts).any():
        return None
    seen_before = np.cumsum(counts, axis=1) > 0
    seen_after = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1] > 0
    inside = int((is_token & seen_before & seen_after).sum())
    # Each row ends with the token, some with a single one, and no other token ends all texts: the end of a text is
    # ignored with the padding behind it.
    at_end = (~counts[:, ::-1]).cumprod(axis=1).sum(axis=1)
    last = following[np.arange(rows), np.maximum(following.shape[1] - 1 - at_end, 0)]
    is_end = rows > 1 and int(at_end.min()) == 1 and len(np.unique(last)) > 1
    return (int(ignored[0]), inside) if inside or is_end else None
