"""Finds the source lines of fused kernels in the graphs of inductor that run, where it was told to keep them."""

import json
import re
import sys
from typing import Any

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.source import is_user_file, line_text
from nbkit.timeline import Events

# How generated code names a kernel to the profiler: the number of the graph is that of when it was compiled.
NAMED = re.compile(r'RAIIAtenRecordFunctionHandle \w+\("(graph_\d+_(\w+))"')
FRAME = re.compile(r'File "(.+)", line (\d+), in ')


class CompiledGraphs:
    """Notes the compiled graphs that run while installed, but where torch._inductor is imported in the step itself."""

    def __init__(self) -> None:
        self.graphs: dict[int, Any] = {}
        kind = getattr(sys.modules.get("torch._inductor.output_code"), "CompiledFxGraph", None)
        self.patch = None if kind is None else Patch(kind, "__call__")

    def install(self) -> None:
        patch, graphs = self.patch, self.graphs
        if patch is None:
            return

        def __call__(graph: Any, *args: Any, **kwargs: Any) -> Any:
            graphs[id(graph)] = graph
            return patch.before(graph, *args, **kwargs)

        patch.install(__call__)

    def remove(self) -> None:
        if self.patch is not None:
            self.patch.remove()

    def tell_sources(self, events: Events) -> None:
        """Writes the source lines of the fused kernels among the events; none where two graphs disagree on them."""
        lines: dict[str, str | None] = {}
        for graph in self.graphs.values():
            for name, text in kernel_lines(graph).items():
                lines[name] = text if lines.get(name, text) == text else None
        self.graphs.clear()
        if lines:
            own = events.texts("source")
            events.source = [line or lines.get(name) for name, line in zip(events.name, own, strict=True)]


def kernel_lines(graph: Any) -> dict[str, str]:
    """Returns, by the name of its row, the lines that each fused kernel of a graph computes; {} where it keeps none."""
    kept = getattr(graph, "inductor_provenance_stack_traces_str", None)
    names = {kernel: name for name, kernel in NAMED.findall(getattr(graph, "source_code", None) or "")}
    lines: dict[str, list[str]] = {}
    for kernel, traces in json.loads(kept).items() if kept else ():
        name = names.get(kernel.rpartition(":")[0])  # behind it stands the number of the call
        if name is not None:
            lines.setdefault(name, []).extend(line for trace in traces if (line := _innermost(trace)))
    return {name: ", ".join(dict.fromkeys(known)) for name, known in lines.items() if known}


def _innermost(trace: str) -> str | None:
    frames = [(file, int(line)) for file, line in FRAME.findall(trace) if is_user_file(file)]
    return line_text(*frames[-1]) if frames else None
