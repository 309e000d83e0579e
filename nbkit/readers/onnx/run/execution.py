"""Runs an ONNX model with onnxruntime and holds all its results as an Execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nbkit.errors import OptionError
from nbkit.readers.onnx.graph import is_constant
from nbkit.readers.onnx.metadata import Origins
from nbkit.readers.onnx.run.describe import InitializerNames, leaf_of, node_result, origins_of
from nbkit.readers.onnx.run.detached import Detached
from nbkit.readers.onnx.run.engine import Engine
from nbkit.readers.onnx.run.inputs import paired
from nbkit.readers.onnx.run.optimized import ONE_FILE_BYTES, optimized_program, same_weights
from nbkit.readers.onnx.run.parse import model_of, program_of
from nbkit.readers.onnx.run.program import Program
from nbkit.readers.onnx.run.session import RefusedError, runtime
from nbkit.readers.onnx.types import dtype_name
from nbkit.trace.executions.arrays import write_arrays
from nbkit.trace.executions.execution import Array, Collector, Execution, Result
from nbkit.trace.executions.values import KEPT_BYTES, Values

if TYPE_CHECKING:
    from onnx import ModelProto


def onnx_execution(
    model: object,
    inputs: Mapping[str, object] | Sequence[object],
    *,
    optimized: str | None = None,
    kept_bytes: int = KEPT_BYTES,
    name: str | None = None,
    dump: Path | None = None,
) -> Execution:
    """Runs an ONNX model on the CPU and returns all its results, in the order of the file, Constant nodes first.

    `model` is a path, an onnx.ModelProto or what torch.onnx.export(dynamo=True) returns. `inputs` are paired as by
    paired_inputs(). With `optimized` ("basic", "extended", "all"), onnxruntime optimizes the model first, and its ops
    are those that are run; nothing is optimized after that, so that each result is there. Results that together are
    larger than 1 GiB come from several sessions, one behind the other. Local functions are replaced by their nodes;
    results inside branches and loop bodies are not seen. `dump` is a folder that gets model.onnx, its inputs as
    model.npz, and optimized.onnx, if that is run. A node that fails ends what needs it, and `error` says why.
    Raises OptionError or TraceError, in a sentence, if inputs do not fit or if onnxruntime runs nothing of the model.
    """
    runtime()
    proto, folder, own_name = model_of(model)
    program, origins = program_of(proto, folder), origins_of(proto)
    fed = {key: value.copy() for key, value in paired(program, inputs).items()}  # recompute() runs with them later
    if dump is not None:
        _write(proto, fed, dump)
    program = program.with_inputs({key: value for key, value in program.overridable.items() if key in fed})
    try:
        if optimized is not None:
            before, program = program, optimized_program(program, optimized, dump)
            origins = same_weights(program, before, origins)
        run = _Run(program, origins, fed, Values(kept_bytes))
        run.leaves()
        run.ops()
    except RefusedError as error:
        raise OptionError(error.sentence()) from error
    failures = run.engine.failures
    results = tuple(run.collector.results)
    if failures and not failures[0].is_of_run and not any(result.kind == "op" for result in results):
        raise OptionError(failures[0].sentence())
    known = {run.names[result.result_id]: result.dtype for result in results}
    return Execution(
        name or own_name,
        "onnxruntime",
        results,
        {output: run.ids[output] for output in program.outputs if output in run.ids},
        run.collector.values,
        Detached(program, fed, run.names, known, run.engine.types).recompute,
        failures[0].sentence() if failures else None,
        run.notes(),
        {"optimized": optimized, "onnxruntime": runtime().__version__, "opsets": _opsets(program)},
    )


def _write(model: ModelProto, fed: Mapping[str, Array], folder: Path) -> None:
    """Writes a model and its inputs; weights that do not fit into one file lie beside it."""
    import onnx

    is_large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > ONE_FILE_BYTES
    if is_large:  # saving these moves them out of the model
        copy = type(model)()
        copy.CopyFrom(model)
        model = copy
    onnx.save(model, folder / "model.onnx", save_as_external_data=is_large, location="model.bin")
    write_arrays(folder / "model.npz", fed)


def _opsets(program: Program) -> dict[str, int]:
    return {opset.domain or "ai.onnx": opset.version for opset in program.shell.opset_import}


class _Run:
    """Collects the results of a run; `ids` and `names` lead from values of the model to results and back."""

    def __init__(self, program: Program, origins: Origins, fed: Mapping[str, Array], values: Values) -> None:
        self.program, self.origins, self.fed = program, origins, fed
        self.collector = Collector(values)
        self.ids: dict[str, int] = {}
        self.names: dict[int, str] = {}
        # They come first, so that results of ops are dense.
        self._nodes = sorted(program.nodes, key=lambda node: not is_constant(node))
        self._dtypes = {value.name: dtype_name(value.type.tensor_type.elem_type) or "none" for value in program.inputs}
        self.engine = Engine(program, self._nodes, fed, self._dtypes)

    def leaves(self) -> None:
        """Adds inputs and initializers."""
        for value in self.program.inputs:
            given = self.fed[value.name]
            self._add(value.name, Result(0, "input", value.name, self._dtypes[value.name], given.shape), given)
        names = InitializerNames(self.program, self.origins)
        for name in self.program.initializers:
            leaf = leaf_of(self.program, name)
            self._add(name, names.result(name, leaf), leaf.value)

    def ops(self) -> None:
        """Runs the nodes and adds their results."""
        ops = [node for node in self._nodes if not is_constant(node)]
        calls = {node.name: call for call, node in enumerate(ops)}
        makers = {name: node for node in self._nodes for name in node.output if name}

        def take(name: str, dtype: str, value: Array | None) -> None:
            node = makers[name]
            result = node_result(node, name, calls.get(node.name), self.ids, self.origins)
            self._add(name, replace(result, dtype=dtype, shape=() if value is None else value.shape), value)

        self.engine.compute(list(makers), take)

    def _add(self, name: str, result: Result, value: Array | None) -> None:
        is_text = value is not None and value.dtype.kind in "OUS"
        # Arrays of a run are its own, as are copies of inputs and bytes of a model.
        self.ids[name] = self.collector.add(result, None if is_text else value, is_own=True)
        self.names[self.ids[name]] = name

    def notes(self) -> tuple[str, ...]:
        """Returns what the results lack."""
        notes = []
        if absent := sum(result.features is None for result in self.collector.results):
            notes.append(f"{absent:,} results have no numbers: they are no tensors, or texts, or sparse.")
        if not self.engine.failures and (lost := [one for one in self.program.outputs if one not in self.ids]):
            notes.append(f"Nothing makes the outputs {', '.join(map(repr, lost))}.")
        if failures := self.engine.failures[1:]:
            notes.append(
                f"{len(failures):,} further nodes cannot be run: {', '.join(str(one.node) for one in failures)}."
            )
        return tuple(notes)
