"""Says what a step would cost under other conditions: what_if."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from nbkit import units
from nbkit.capture.cost.what_if.changed_step import observe, observe_changed
from nbkit.capture.cost.what_if.changes import Attention, Changes
from nbkit.capture.cost.what_if.checkpointing import checkpoint_code
from nbkit.capture.cost.what_if.difference import difference
from nbkit.capture.cost.what_if.sizes import Size
from nbkit.errors import OptionError
from nbkit.schema.cost import DIFFERENCE  # noqa: F401  documented beside what_if
from nbkit.trace.trace import Trace

SHOWN = (
    "peak_bytes",
    "saved_bytes",
    "parameter_bytes",
    "gradient_bytes",
    "optimizer_state_bytes",
    "forward_flops",
    "backward_flops",
)


@dataclass(frozen=True, repr=False)
class WhatIf:
    """Holds the answer to a what-if question: two traces of opcost, and how they differ.

    Args:
        baseline: the trace of the step as it is.
        changed: the trace of the step under the other conditions; its notes say which inputs were seen otherwise.
        difference: a row per measure, in bytes and FLOPs.
        question: what was asked, such as "batch_size=32".
    """

    baseline: Trace
    changed: Trace
    difference: pd.DataFrame
    question: str

    @property
    def checkpoint_code(self) -> str:
        """Returns Python whose function checkpoint_modules(model) checkpoints what `changed` has so; '' for none."""
        return checkpoint_code(self.changed.meta.get("checkpointed", {}))

    def __repr__(self) -> str:
        rows = self.difference.set_index("measure")
        sent = [name for name in rows.index if name.startswith(("all_", "reduce_")) and rows.loc[name, "changed"]]
        lines = [self._line(name, rows.loc[name]) for name in (*SHOWN, *sent)]
        return "\n".join([f"{self.question}:", *filter(None, lines), *self.changed.meta.get("notes", [])])

    @staticmethod
    def _line(name: str, row: Any) -> str:
        text = units.flops if name.endswith("_flops") else units.data_size
        label = name.removesuffix("_bytes").removesuffix("_flops").replace("_", " ")
        label += " FLOPs" if name.endswith("_flops") else ""
        if not row["baseline"] and not row["changed"]:
            return ""
        factor = "" if pd.isna(row["ratio"]) else f" ({units.general(row['ratio'], 3)}x)"
        if row["change"] == 0:
            return f"  {label}: {text(row['baseline'])}, unchanged"
        return f"  {label}: {text(row['baseline'])} -> {text(row['changed'])}{factor}"


def what_if(  # noqa: PLR0913  each is a question of its own, by keyword
    step: Callable[[], object],
    *,
    batch_size: Size | None = None,
    sequence_length: Size | None = None,
    dtype: torch.dtype | None = None,
    checkpoint: str | Sequence[str] | None = None,
    sdpa: Attention | None = None,
    optimizer: Callable[..., Any] | None = None,
    foreach: bool | None = None,
    tensor_parallel: int | None = None,
    fully_sharded: int | None = None,
) -> WhatIf:
    """Returns what a step would cost under other conditions, beside what it costs as it is.

    The step runs twice on shapes alone, as in `opcost`: models, optimizers and tensors are taken as they are and left
    as they are. Several changes hold together. `asked.baseline` and `asked.changed` are traces, `asked.difference` is
    the frame DIFFERENCE, with the peak of memory, saved bytes, FLOPs and more; printed, it says the difference first.

    What the step takes from outside can be changed: its inputs, parameters, buffers, optimizers. What it makes itself,
    such as `torch.zeros(8, 128)`, cannot. Views of one memory that are inputs get a memory each.

    What ranks share is worked out from the trace, not run; all measures are those of one rank, with the inputs of the
    step for its own. `fully_sharded` is FSDP that shards after the forward pass (ZeRO-3): each part of the outermost
    ModuleList or Sequential is gathered before its forward and again before its backward pass, one at a time, without
    prefetching; the rest of the model stays gathered from its first op to its last one. Until they are reduced, the
    gradients of a part are whole. `tensor_parallel` is Megatron's: of the Linear layers in the innermost module that
    holds several, the last one is split by rows and those before it by columns, if it leads back to the width that they
    take and the number of ranks divides all widths; what runs between them, elementwise ops and attention by heads, is
    split too. All others, embeddings and nn.MultiheadAttention stay whole. Bytes sent are those of a ring: of an
    all-gather or reduce-scatter (n - 1) / n of its size, of an all-reduce twice that.

    Args:
        step: the function that opcost().run() takes, called without arguments.
        batch_size: new size of the first dimension of the inputs: those whose first dimension has the size that all
            have, else the first and the largest of them. Or new sizes by old ones, `{8: 32}`: these change in every
            dimension of every input.
        sequence_length: the same for the second dimension.
        dtype: floating parameters, buffers and inputs, with gradients and optimizer state, as that dtype, as after
            `model.to(dtype)`. What the step casts itself, and autocast, stay as they are.
        checkpoint: modules whose forward pass keeps its inputs alone and runs again in the backward pass
            (torch.utils.checkpoint, use_reentrant=False): patterns of module paths, such as "layers.*". Of nested ones
            the outermost is taken.
        sdpa: backend of scaled_dot_product_attention: "math", "flash", "efficient" or "cudnn"; the step fails with
            one that its device has not.
        optimizer: a class such as torch.optim.SGD, made with the parameter groups and their learning rates, or a
            function that takes parameter groups (a list of dicts) and returns an optimizer. It steps in place of each
            optimizer of the step, and has stepped before if that one has.
        foreach: that option of the optimizers.
        tensor_parallel: number of ranks that split the pairs of Linear layers, as Megatron does.
        fully_sharded: number of ranks that share parameters, gradients and optimizer state, as FSDP does.

    Raises:
        OptionError: for a change that changes nothing, or whose meaning is not clear.
        CostError: where the step does not run under the changes; and as from `opcost`.
    """
    changes = Changes(
        batch_size, sequence_length, dtype, checkpoint, sdpa, optimizer, foreach, tensor_parallel, fully_sharded
    )
    if not str(changes):
        raise OptionError("what_if() was given no change; name one, such as batch_size=32.")
    before = observe(step)
    after = observe_changed(step, changes, before)
    return WhatIf(before.trace, after.trace, difference(before.trace, after.trace), str(changes))
