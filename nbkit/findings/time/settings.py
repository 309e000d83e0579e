"""Names settings of the process that make each step slower, and are easily left on."""

from collections.abc import Iterator

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.step import TimedStep

# What is on and what that does, and how it is switched off.
TEXTS: dict[str, tuple[str, str]] = {
    "deterministic": (
        "Deterministic algorithms are on: ops give the same bits at each run, some by slower kernels, and memory of "
        "empty() is filled",
        "torch.use_deterministic_algorithms(False), or torch.utils.deterministic.fill_uninitialized_memory = False",
    ),
    "trace": (
        "A function of sys.settrace sees each line of Python: a debugger, or a tool that measures coverage",
        "sys.settrace(None), or run without that tool",
    ),
    "profile": (
        "A function of sys.setprofile sees each call of Python: cProfile, or another profiler",
        "sys.setprofile(None), or profiler.disable()",
    ),
    "tracemalloc": ("tracemalloc notes each piece of memory that Python takes", "tracemalloc.stop()"),
    "blocking": (
        "CUDA_LAUNCH_BLOCKING is set: Python waits for each kernel, so that device and host never work side by side",
        "unset CUDA_LAUNCH_BLOCKING",
    ),
    "uncached": (
        "PYTORCH_NO_CUDA_MEMORY_CACHING is set: each tensor asks the driver for memory, which waits for the device",
        "unset PYTORCH_NO_CUDA_MEMORY_CACHING",
    ),
    "ranks": (
        "TORCH_DISTRIBUTED_DEBUG is DETAIL: the ranks compare each collective before it runs",
        "unset TORCH_DISTRIBUTED_DEBUG",
    ),
}


@rule("hint", rank=140)
def slow_setting(step: TimedStep) -> Iterator[Finding]:
    """A setting that slows each step down is on: deterministic algorithms, a tracer or profiler of Python, tracemalloc,
    `CUDA_LAUNCH_BLOCKING`, memory without a cache, `TORCH_DISTRIBUTED_DEBUG=DETAIL`.
    """
    for name in step.settings:
        message, switch = TEXTS[name]
        yield slow_setting.finding(message, f"Switch it off: {switch}.", evidence={"setting": name})
