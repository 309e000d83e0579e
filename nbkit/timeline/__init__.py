"""Turns what a profiler saw on its clock into frames, for live recordings and for the readers of trace files."""

from nbkit.timeline.events import HOST, KERNEL, MEMORY, MODULE, RUNTIME, Events
from nbkit.timeline.rows import Timeline, timeline

__all__ = ["HOST", "KERNEL", "MEMORY", "MODULE", "RUNTIME", "Events", "Timeline", "timeline"]
