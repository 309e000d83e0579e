"""Measures what aligning models takes, for align.py: a LLaMA beside its export, ONNX beside ONNX, and the recorder.

The LLaMA is the sample model with 32 layers; exporting it is torch's work and told apart. The pairs are parts of
another LLaMA at 1,024 tokens, as torch exports them and as onnxruntime optimizes that. The recorder is timed beside
the bare run.
"""

import warnings
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

import torch

from bench.harness.ratios import Figure, figures_table, ratio
from nbkit.capture.executions.export import exported_onnx
from nbkit.capture.executions.torch_execution import torch_execution
from nbkit.verbs.alignment.opalign import aligned_trace
from nbkit.verbs.alignment.sides import execution_of
from sample_models.llama import Llama, LlamaConfig

LLAMA_BUDGET_S = 10.0
LAYERS, WIDTH, TOKENS = 32, 64, 64
PAIR_TOKENS = 1_024
RECORDED_TOKENS = (64, 1_024)
EAGER, ONNX, ALIGNING = "eager run", "ONNX run", "aligning"


class Spans:
    """Holds wall and CPU seconds of each run, by name."""

    def __init__(self) -> None:
        self.walls: dict[str, list[float]] = {}
        self.cpus: dict[str, list[float]] = {}

    def timed(self, name: str, run: Callable[[], Any]) -> Any:
        """Runs something, notes how long it took, and returns what it gives."""
        wall, cpu = perf_counter(), process_time()
        found = run()
        self.walls.setdefault(name, []).append(perf_counter() - wall)
        self.cpus.setdefault(name, []).append(process_time() - cpu)
        return found

    def figures(self) -> list[Figure]:
        """Returns the median of each."""
        return [Figure(name, median(self.walls[name]), median(self.cpus[name]), "s") for name in self.walls]

    def total(self) -> tuple[float, float]:
        """Returns the median over the rounds of all of a round together."""
        walls, cpus = (median(map(sum, zip(*clock.values(), strict=True))) for clock in (self.walls, self.cpus))
        return walls, cpus


def model_parts(rounds: int) -> list[str]:
    """Returns the sections of the report."""
    warnings.simplefilter("ignore")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [
            f"## LLaMA of {LAYERS} layers, hidden size {WIDTH}, {TOKENS} tokens, eager beside ONNX",
            llama_table(rounds),
            f"## ONNX beside ONNX at {PAIR_TOKENS:,} tokens, both runs and aligning",
            pairs_table(rounds),
            "## Recording the values of all ops of attention, beside its bare run",
            recorder_table(rounds),
        ]
    finally:
        torch.set_num_threads(threads)


def llama_table(rounds: int) -> str:
    """Returns the seconds of exporting, running and aligning the sample LLaMA."""
    torch.manual_seed(0)
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "intermediate_size": 2 * WIDTH, "vocab_size": 100}
    model = Llama(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2)).eval()
    ids = torch.randint(100, (1, TOKENS))
    exporting, spans = Spans(), Spans()
    proto, named = exporting.timed("export, by torch, once", lambda: exported_onnx(model, (ids,)))
    for _ in range(rounds):
        left = spans.timed(EAGER, lambda: executed(model, [ids]))
        right = spans.timed(ONNX, lambda: executed(proto, named))
        trace = spans.timed(ALIGNING, lambda left=left, right=right: aligned_trace(left, right))
    whole = Figure("both runs and aligning", *spans.total(), "s", LLAMA_BUDGET_S)
    return f"{figures_table([*exporting.figures(), *spans.figures(), whole])}\n\n{said_of(trace)}"


def pairs_table(rounds: int) -> str:
    """Returns the seconds of running and aligning parts of a LLaMA in two forms of ONNX."""
    from tests.align_cases.onnx_pairs import pairs

    figures, said = [], []
    for case in pairs((PAIR_TOKENS,)):
        spans = Spans()
        for _ in range(rounds):
            left = spans.timed("left run", lambda case=case: executed(case.left, case.inputs))
            right = spans.timed("right run", lambda case=case: executed(case.right, case.inputs))
            trace = spans.timed(ALIGNING, lambda left=left, right=right: aligned_trace(left, right))
        figures.append(Figure(case.name, *spans.total(), "s"))
        said.append(f"- {case.name}: {said_of(trace)}")
    return "\n".join([figures_table(figures), "", *said])


def recorder_table(rounds: int) -> str:
    """Returns how many times as long as the bare run a recorded one takes."""
    ratios = {tokens: recorder_ratio(tokens, rounds) for tokens in RECORDED_TOKENS}
    return figures_table(
        [Figure(f"recorded over bare, {tokens:,} tokens", *found, "x") for tokens, found in ratios.items()]
    )


def recorder_ratio(tokens: int, rounds: int) -> tuple[float, float]:
    """Returns the median of the ratios of the rounds, on both clocks; a round before them is not counted."""
    from tests.align_cases.onnx_models import torch_inputs, torch_part

    model, inputs, spans = torch_part("attention"), torch_inputs("attention", tokens), Spans()
    for _ in range(rounds + 1):
        with torch.no_grad():
            spans.timed("bare", lambda: model(**inputs))
        spans.timed("recorded", lambda: torch_execution(model, (), inputs))
    walls, cpus = (ratio(clock["recorded"][1:], clock["bare"][1:]) for clock in (spans.walls, spans.cpus))
    return walls, cpus


def executed(model: Any, inputs: Any) -> Any:
    return execution_of(model, inputs, backward=False, kept_bytes=1 << 30)


def said_of(trace: Any) -> str:
    """Returns what was found, in a line."""
    sizes = " and ".join(f"{trace.meta[side]['results']:,}" for side in ("left", "right"))
    counts = ", ".join(f"{mark} {count:,}" for mark, count in trace.meta["counts"].items())
    first = trace.meta["first_divergence"]
    return f"{sizes} results; {counts}; {'no divergence' if first is None else first['message']}."
