"""Names files of other tools that are often given for a trace: what they are, and what to give instead."""

import re
from collections.abc import Mapping
from typing import Any

TIMES = "it holds no times of ops: export the profile with torch.profiler's export_chrome_trace()"
MEMORY = (
    "it holds sums, not allocations: dump a snapshot with torch.cuda.memory._dump_snapshot(), or export a profile "
    "with profile_memory=True by export_chrome_trace()"
)
MEMORY_TIMELINE = f"a memory timeline of torch.profiler (export_memory_timeline); {MEMORY}"
# What the first characters of a text or of bytes look like.
HEADS = (
    (re.compile(r"SQLite format 3\0"), f"a SQLite database, as Nsight Systems and viewers of traces write; {TIMES}"),
    (
        re.compile(r"PK\x03\x04"),
        "a zip archive, as torch.save() writes; give the trace that is inside, or "
        "dump the snapshot itself with torch.cuda.memory._dump_snapshot()",
    ),
    (re.compile(r"\s*<(?:!doctype )?html\b.*?Memory Timeline", re.DOTALL | re.IGNORECASE), MEMORY_TIMELINE),
    (re.compile(r"\s*<(?:!doctype )?html\b", re.IGNORECASE), "a page of HTML; give the trace that it shows"),
    (
        re.compile(r"[^\n]*\n?[^\n]*\bName +Self \w+ %.*# of Calls"),
        f"a table of torch.profiler (key_averages().table()); {TIMES}",
    ),
    (
        re.compile(r"(?:[^\n;]+;)*[^\n;]+\(\d+\): ?\S[^\n]* \d+\n"),
        f"a list of stacks of torch.profiler (export_stacks), with sums; {TIMES}",
    ),
)


def of_text(head: str) -> str | None:
    """Returns what a file that begins so is, and what to give instead; None if it is none of these kinds."""
    return next((kind for pattern, kind in HEADS if pattern.match(head)), None)


def of_object(around: Mapping[str, Any]) -> str | None:
    """Returns the same of a JSON object without events."""
    if "nodes" in around and "schema" in around:
        return f"an execution trace of PyTorch (ExecutionTraceObserver); {TIMES}"
    return None


def of_events(first: object) -> str | None:
    """Returns the same of a list, by its first entry."""
    if isinstance(first, list) and first and isinstance(first[0], int):
        return MEMORY_TIMELINE
    if isinstance(first, dict) and first.get("cat") == "Session":
        return (
            "a profile of onnxruntime (enable_profiling), whose nodes are no ops of torch; give the ONNX model to see "
            "its graph, or compare its values with nbkit.opalign(model, 'onnxruntime', inputs=...)"
        )
    return None
