"""Makes the frames of an alignment: its pairs, the results of both executions, and both graphs."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import pandas as pd

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.errors import metrics_of
from nbkit.analysis.align.first_divergence import module_of
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.origins import Origins, origins_of
from nbkit.analysis.align.side import Side
from nbkit.analysis.graph_match.side_frames import merged
from nbkit.analysis.structure.recognise import recognise
from nbkit.divergence.arguments import other_arguments
from nbkit.divergence.columns import action_of, mark_of
from nbkit.graphs.module_paths import ModulePaths
from nbkit.graphs.rows import GraphRows, json_text, shape_text
from nbkit.numerics.blocks import same_bits
from nbkit.schema import ALIGNMENT, CORRESPONDENCE, RESULTS
from nbkit.step.decode import arguments_of, as_shape
from nbkit.step.reachable import reachable
from nbkit.trace.executions.execution import Execution

Row = dict[str, Any]
MOMENTS = ("mean", "rms", "min", "max", "nan_count", "inf_count")
NOT_KNOWN = "its values are not known on both sides; its statistics correspond"
TEXTS = ("kind", "name", "op", "phase", "source", "dtype", "arguments")


def frames_of(alignment: Alignment) -> dict[str, pd.DataFrame]:
    """Returns the frames alignment and results of an alignment, and nodes, edges, graph_tensors and parts of both."""
    left, right = alignment.left.execution, alignment.right.execution
    sides = [graph_frames(side, f"{name}: {side.name}") for name, side in (("left", left), ("right", right))]
    graphs = merged(sides[0], sides[1], CORRESPONDENCE.frame())
    graphs.pop("correspondence")
    return {"alignment": alignment_frame(alignment), "results": results_frame(left, right), **graphs}


def results_frame(left: Execution, right: Execution) -> pd.DataFrame:
    """Returns a frame of RESULTS: those of the left execution, then those of the right one, numbered on."""
    columns: dict[str, list[Any]] = {name: [] for name in RESULTS.names}
    for side, execution, shift in (("left", left, 0), ("right", right, len(left.results))):
        outputs = set(execution.outputs.values())
        results = execution.results
        columns["result_id"] += [result.result_id + shift for result in results]
        columns["side"] += [side] * len(results)
        columns["is_output"] += [result.result_id in outputs for result in results]
        columns["shape"] += [shape_text(as_shape(result.shape)) for result in results]
        columns["numel"] += [max(prod(result.shape), 0) for result in results]
        columns["reads"] += [json_text([source + shift for source in result.sources]) for result in results]
        for name in (*TEXTS, "module"):
            columns[name] += [getattr(result, name) for result in results]
        for name in MOMENTS:
            columns[name] += [getattr(result.features, name, None) for result in results]
    return RESULTS.frame(columns)


def alignment_frame(alignment: Alignment) -> pd.DataFrame:
    """Returns a frame of ALIGNMENT: all pairs and all results of one side alone, in the order of the left execution."""
    origins = origins_of(alignment)
    ordered = list(_ordered(alignment))
    numbers = {key: row for row, (key, _, _) in enumerate(ordered)}
    pairs = [match for _, match, _ in ordered if match is not None]
    metrics = iter(metrics_of(alignment.left, alignment.right, pairs))
    rows = []
    for _, match, (left, right) in ordered:
        row = _texts(alignment, left, right)
        row |= _of_match(alignment, match) | next(metrics) if match else _alone(alignment, left, right)
        row |= _verdict(alignment, origins, numbers, match, left, right)
        rows.append(row)
    return ALIGNMENT.frame(rows)


def _ordered(alignment: Alignment) -> Iterator[tuple[Any, Match | None, tuple[int | None, int | None]]]:
    """Yields a key, the match, and both result_ids of each row; one of the right alone is behind what it follows."""
    matches, sizes = alignment.matches, (len(alignment.left), len(alignment.right))
    of_left: dict[int, list[Match]] = {}
    for match in matches.all:
        of_left.setdefault(match.left, []).append(match)
    behind: dict[int, list[int]] = {}
    last = -1
    for number in range(sizes[1]):
        if number in matches.left_of:
            last = max(last, matches.left_of[number].left)
        else:
            behind.setdefault(last, []).append(number)
    for number in range(-1, sizes[0]):
        if number >= 0 and number not in of_left:
            yield ("left", number), None, (number, None)
        for match in of_left.get(number, ()):
            yield ("pair", match.left, match.right), match, (match.left, match.right)
        for alone in behind.get(number, ()):
            yield ("right", alone), None, (None, alone)


def _texts(alignment: Alignment, left: int | None, right: int | None) -> Row:
    shift = len(alignment.left)
    row: Row = {"left_id": left, "right_id": None if right is None else right + shift}
    first = left is not None
    for side, number in ((alignment.left, left), (alignment.right, right)):
        prefix = "" if side is alignment.left else "right_"
        if number is None:
            continue
        result = side.results[number]
        row |= {
            f"{prefix}op": result.op,
            f"{prefix}module": module_of(side, number),
            f"{prefix}source": result.source,
            f"{prefix}name": result.name,
            f"{prefix}dtype": result.dtype,
            f"{prefix}shape": shape_text(as_shape(result.shape)),
        }
        if side is alignment.left or not first:
            row |= {"kind": result.kind, "phase": result.phase}
    if not first:
        row |= {name: row[f"right_{name}"] for name in ("op", "module", "source")}
    return row


def _of_match(alignment: Alignment, match: Match) -> Row:
    left, right = alignment.left, alignment.right
    local = alignment.local.get(match.right) if alignment.matches.left_of[match.right] is match else None
    read = [alignment.matches.left_of.get(source) for source in right.results[match.right].sources]
    before = [known for one in read if one is not None and (known := alignment.error_of(one)) is not None]
    return {
        "action": "match",
        "mark": mark_of("match", agrees=match.agrees and not alignment.is_missing(match)),
        "relation": match.part or (match.relation.name if match.relation else "other"),
        "evidence": match.evidence,
        "input_error": max(before, default=None),
        "output_error": alignment.error_of(match),
        "allowed_error": None if local is None else local.allowed,
        "local_error": None if local is None else local.error,
        "arguments": _other_arguments(left, right, match),
    }


def _other_arguments(left: Side, right: Side, match: Match) -> str | None:
    ours, theirs = left.results[match.left], right.results[match.right]
    if ours.op != theirs.op or not (ours.arguments and theirs.arguments):
        return None
    others = other_arguments(ours.arguments, theirs.arguments)
    return json_text(others) if others else None


def _alone(alignment: Alignment, left: int | None, right: int | None) -> Row:
    which, number = (0, left) if left is not None else (1, right)
    assert number is not None
    action = action_of(left, right)
    row: Row = {"action": action, "mark": mark_of(action, agrees=False)}
    if number not in alignment.differing[which] and (reason := _reason(alignment, which, number)) is not None:
        relation, message = reason
        row |= {"relation": relation, "message": message}
    return row


def _reason(alignment: Alignment, which: int, number: int) -> tuple[str, str] | None:
    """Returns relation and message of a result that one side alone has and that differs from nothing."""
    side, other = (alignment.left, alignment.right) if which == 0 else (alignment.right, alignment.left)
    result, name = side.results[number], "right" if which == 0 else "left"
    if not side.leads_to_outputs[number] and not side.execution.error:  # a run that ended early has no outputs
        return "unused", "no output is made of it"
    if result.kind == "constant":
        readers = dict.fromkeys(side.results[reader].op for reader in side.execution.readers[number])
        return "constant", f"a constant that {', '.join(filter(None, readers))} reads"
    into = _folded_into(alignment, which, number)
    if into is None or result.kind == "input":
        return None
    made = other.results[into]
    if (twin := _twin(alignment, which, number, into)) is not None:
        return "folded", f"merged with {twin}, which has the same values and is what {made.op} of the {name} reads"
    if result.kind != "op":  # such as a bias of zeros, which an exporter leaves out
        return "folded", f"{made.op or made.name} of the {name} has it inside"
    if made.kind != "op":
        return "folded", f"a step to what the {name} has as the {made.kind} {made.name}"
    return "folded", f"a step inside {made.op or made.name} of the {name}"


def _twin(alignment: Alignment, which: int, number: int, into: int) -> str | None:
    """Returns the name of a parameter of the same values that the other side reads in the place of this one."""
    side, other = (alignment.left, alignment.right) if which == 0 else (alignment.right, alignment.left)
    value = side.execution.value(number)
    for result in side.results if side.results[number].kind in ("parameter", "buffer") else ():
        partner, twin = alignment.matches.partner(which, result.result_id), side.execution.value(result.result_id)
        is_read = partner in other.results[into].sources and result.kind != "op"
        if is_read and value is not None and twin is not None and value.shape == twin.shape and same_bits(value, twin):
            return result.name
    return None


def _folded_into(alignment: Alignment, which: int, number: int) -> int | None:
    """Returns the result of the other side inside which a result is: the partner of the first that is made of it."""
    side = alignment.left if which == 0 else alignment.right
    made = reachable([number], side.execution.readers.__getitem__)
    partners = (alignment.matches.partner(which, one) for one in made if one != number)
    return next((partner for partner in partners if partner is not None), None)


def _verdict(
    alignment: Alignment,
    origins: Origins,
    numbers: Mapping[Any, int],
    match: Match | None,
    left: int | None,
    right: int | None,
) -> Row:
    """Returns error_class and origin_id of a row, and the message of a beginning."""
    number = origins.of(left, right)
    if match is not None and alignment.is_missing(match):
        return {"message": NOT_KNOWN}
    if number is None or (match is not None and match.agrees):
        return {"error_class": "clean"} if match is not None and match.agrees else {}
    event = alignment.events[number]
    key = (
        ("pair", event.match.left, event.match.right)
        if event.match
        else ("left", event.left[0])
        if event.left
        else ("right", event.right[0])
    )
    row: Row = {"origin_id": numbers.get(key)}
    if event.match is match and (match is not None or origins.begins(left, right)):
        is_state = match is not None and alignment.left.results[match.left].kind != "op"
        return {**row, "error_class": "input" if is_state else "local", "message": origins.messages[number]}
    return {**row, "error_class": "propagated"}


def graph_frames(execution: Execution, graph: str) -> dict[str, pd.DataFrame]:
    """Returns nodes, edges, graph_tensors, modules and parts of an execution: one node for each of its results."""
    rows, paths = GraphRows(), ModulePaths()
    nodes = {}
    for result in execution.results:
        columns: dict[str, Any] = {name: getattr(result, name) for name in ("op", "phase", "source", "dtype")}
        columns["shape"] = as_shape(result.shape)
        attributes = {"arguments": arguments_of(result.arguments)} if result.arguments else {}
        module = module_of_result(result.kind, result.name, result.module)
        nodes[result.result_id] = rows.node(
            graph, result.kind, result.name, attributes=attributes, module=module, **columns
        )
        for port, source in enumerate(result.sources):
            made = execution.results[source]
            rows.edge(
                nodes[source], nodes[result.result_id], made.name, dst_port=port, src_port=0,
                shape=as_shape(made.shape), dtype=made.dtype,
            )  # fmt: skip
    for name, number in execution.outputs.items():
        made = execution.results[number]
        node = rows.node(graph, "output", name, shape=as_shape(made.shape), dtype=made.dtype)
        rows.edge(nodes[number], node, made.name, dst_port=0, src_port=0, shape=as_shape(made.shape), dtype=made.dtype)
    return recognise({**rows.frames(), "modules": paths.frame(graph)})


def module_of_result(kind: str, name: str, module: str | None) -> str | None:
    """Returns the module of a node: of a parameter or buffer the one that its path says."""
    return name.rpartition(".")[0] if kind in ("parameter", "buffer") and module is None and "." in name else module
