"""Finds the ranges of a recording among its events, and puts names and modules in place of the marks."""

import numpy as np

from nbkit.capture.profiler.api_ranges import API_MARK, ApiRanges
from nbkit.capture.profiler.collectives import COLLECTIVE_MARK, Collectives
from nbkit.capture.profiler.ranges import ROOT_MARK, Ranges
from nbkit.timeline import MODULE, Events
from nbkit.timeline.events import ABSENT
from nbkit.timeline.names import ROOT


def with_marks(events: Events, ranges: Ranges, api: ApiRanges, collectives: Collectives) -> Events:
    """Returns the events with every range under its own name; they start at that of the root range."""
    by_mark = {entry.name: entry for entry in ranges.module_ranges.values()}
    calls = dict.fromkeys(by_mark, 0)
    names, labels = list(events.name), ranges.modules.roots.labels()
    model, module, source, group = (_no_texts(len(events)) for _ in range(4))
    size_bytes = events.integers("size_bytes")
    module_call = np.full(len(events), ABSENT, dtype=np.int64)
    # A block that the user named like a mark is none. In order of time, in which the calls of a module are counted.
    rows = np.flatnonzero(events.integers("block") != 1)
    for row in rows[np.argsort(events.start_ns[rows], kind="stable")].tolist():
        name = names[row]
        if name in by_mark:
            called, names[row] = by_mark[name].called, by_mark[name].type
            module_call[row] = calls[name]
            calls[name] += 1
            model[row], module[row], events.kind[row] = labels[called.root], called.path, MODULE
        elif name.startswith(API_MARK):
            names[row], source[row] = api.described(int(name[len(API_MARK) :]))
        elif name.startswith(COLLECTIVE_MARK):
            names[row], moved, group[row] = collectives.calls[int(name[len(COLLECTIVE_MARK) :])]
            size_bytes[row] = ABSENT if moved is None else moved
        elif name == ROOT_MARK:
            names[row] = ROOT
            events.origin_ns, events.main_thread = int(events.start_ns[row]), int(events.thread[row])
    events.name, events.model, events.module, events.source = names, model, module, source
    events.module_call, events.size_bytes, events.group = module_call, size_bytes, group
    return events


def _no_texts(count: int) -> list[str | None]:
    return [None] * count
