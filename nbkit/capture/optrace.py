"""Records every op of a model step (optrace)."""

from typing import Literal, Unpack

from nbkit.capture.check.opcheck import CheckObserver
from nbkit.capture.recorder.needs import check_observed, check_threads
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.scope.filters import OpFilters, selection_of, with_filters
from nbkit.errors import OptionError, nearest

VALUES = ("stats",)


@with_filters
class optrace(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Records every op run inside it, as a context manager; gives a Trace, filled when it ends.

    API calls (`torch.nn.functional.linear`) and the aten ops below them, forward, backward and optimizer, with module
    path, source line, shapes, dtypes, strides, devices and dataflow. What runs inside computes the same bits as without
    it. After an exception the trace so far is kept, marked incomplete.

    Args:
        **filters: those of OpFilters.
        inner_ops: record also the ops that ops call, as their children: `aten.t` in `aten.linear`, `aten.empty` in a
            kernel. These are the rows of `optime` and of torch.profiler, in their order, about three times as many.
            It needs the built recorder (`build_recorder()`).
        threads: "all" records the ops of every thread of the process, "current" those of this one and of autograd's for
            it. Ops of other threads have a module and a source line, but no API call. It needs the built recorder.
        values: "stats" adds mean, std, min, max, norm, NaN and Inf counts of every tensor (slow: reads every value);
            null where memory was not written yet. Without filters it looks for NaN, Inf and underflow as opcheck does.
        name: what the trace is called where it is shown.

    Raises:
        PatternError, OptionError: before anything runs.

    Without threads="all", only the thread that enters it is recorded, and the threads autograd runs for it. Nested
    recordings each see all.
    """

    verb = "optrace"

    def __init__(
        self,
        *,
        inner_ops: bool = False,
        threads: Literal["current", "all"] = "current",
        values: Literal["stats"] | None = None,
        name: str | None = None,
        **filters: Unpack[OpFilters],
    ) -> None:
        if values is not None and values not in VALUES:
            raise OptionError(f"values={values!r} is not known; {nearest(str(values), VALUES)}")
        if inner_ops:
            check_observed("inner_ops", values)
        check_threads(threads, values)
        selection = selection_of(filters)
        # What a filter leaves out may take a NaN out again.
        observers = [CheckObserver()] if values is not None and not selection.set_options() else []
        super().__init__(
            *observers, selection=selection, values=values, inner_ops=inner_ops, threads=threads, name=name
        )
