"""Tests how the source lines of fused kernels are read from a compiled graph."""

import json
import sys
from types import SimpleNamespace

from nbkit.capture.profiler.compiled_graphs import CompiledGraphs, kernel_lines
from tests.timeline.makers import events

CODE = 'torch::aot_inductor::RAIIAtenRecordFunctionHandle record_graph_4_{0}_("graph_4_{0}", nullptr);'


def trace(*lines):
    return "".join(f'  File "net/model.py", line {line}, in forward\n    y = x\n' for line in lines)


def graph(kernels, code=CODE):
    named = "\n".join(code.format(kernel.partition(":")[0]) for kernel in kernels)
    return SimpleNamespace(source_code=named, inductor_provenance_stack_traces_str=json.dumps(kernels))


def test_a_kernel_has_the_innermost_line_of_each_op_that_it_fuses():
    kernels = {"cpp_fused_add_0:1": [trace(3, 9), trace(3, 12)], "cpp_fused_add_0:5": [trace(9)]}
    assert kernel_lines(graph(kernels)) == {"graph_4_cpp_fused_add_0": "net/model.py:9, net/model.py:12"}


def test_lines_of_torch_itself_are_none():
    kernels = {"cpp_fused_sum_0:1": [f'  File "{json.__file__}", line 1, in f\n']}
    assert kernel_lines(graph(kernels)) == {}


def test_a_kernel_that_its_code_does_not_name_and_a_graph_that_keeps_nothing_have_no_lines():
    assert kernel_lines(graph({"extern_kernels.mm:2": [trace(3)]}, code="")) == {}
    assert kernel_lines(SimpleNamespace()) == {}


def test_graphs_are_noted_until_the_end_and_no_longer(monkeypatch):
    class Graph:
        def __call__(self, x):
            return x + 1

    monkeypatch.setitem(sys.modules, "torch._inductor.output_code", SimpleNamespace(CompiledFxGraph=Graph))
    graphs, inside, later = CompiledGraphs(), Graph(), Graph()
    graphs.install()
    assert inside(1) == 2
    graphs.remove()
    assert later(1) == 2
    assert [*graphs.graphs.values()] == [inside]


def test_a_name_that_two_graphs_share_has_no_line():
    graphs = CompiledGraphs()
    first = graph({"cpp_fused_a_0:1": [trace(3)], "cpp_fused_b_1:2": [trace(5)]})
    graphs.graphs = {1: first, 2: graph({"cpp_fused_a_0:1": [trace(7)]})}
    names = ["graph_4_cpp_fused_a_0", "graph_4_cpp_fused_b_1", "aten::mm"]
    seen = events(*({"name": name, "start": start, "end": start + 1} for start, name in enumerate(names)))
    graphs.tell_sources(seen)
    assert seen.source == [None, "net/model.py:5", None]
