"""Features of a Paddle program, a stage of LLaMA's pipeline, each held against an own reading of its lines."""

import json
import re
from ast import literal_eval
from collections import Counter
from functools import cache

import pandas as pd
import torch

import nbkit
from bench.features.dumps import in_notebook, on_page, opened
from bench.features.registry import DATA, feature
from sample_models.llama import Llama, LlamaConfig

PROGRAM = DATA / "paddle_llama_pipeline_program.txt"
VARIABLE = re.compile(
    r"^ *(persist )?(trainable )?(?:var|param) (\S+) : \w+\.shape\((.*?)\)\.dtype\((\w+)\)\.stop_gradient\((\w+)\)",
    re.M,
)
OPERATION = re.compile(r"^ *(?:\d+)?\{?(.*?)\}? ?=? ?(\w+)\(inputs=\{(.*?)\}, (.*)\)$")


@cache
def text() -> str:
    return PROGRAM.read_text(encoding="utf-8")


@cache
def trace() -> nbkit.Trace:
    text()
    return nbkit.opgraph(PROGRAM)


@cache
def operations() -> list[tuple[str, list[str], list[str], str]]:
    """Type, inputs, outputs and attributes of each operation, in order."""
    made = []
    for line in text().splitlines():
        if "(inputs={" in line:
            before, _, rest = line.partition("(inputs={")
            read, _, attributes = rest.partition("}, ")
            kind = before.split()[-1].removeprefix("}")
            names = [re.findall(r"'([^']*)'", part) for part in (read, before)]
            made.append((kind, names[0], names[1], attributes))
    return made


def attribute(name: str) -> list[str | None]:
    return [found and found[1] for found in (re.search(rf"\b{name} = ([^,)]*)", of) for *_, of in operations())]


def ops() -> pd.DataFrame:
    return trace().nodes.query("kind == 'op'").reset_index(drop=True)


@feature("paddle", "variables: kind, shape, dtype, persist, trainable, stop_gradient", "frame `graph_tensors`")
def variables() -> None:
    rows = trace().graph_tensors.set_index("tensor")
    own = VARIABLE.findall(text())
    assert len(own) == len(rows)
    for persist, trainable, name, shape, dtype, stop in own:
        row = rows.loc[name]
        assert (row["dtype"], json.loads(row["shape"])) == (
            dtype,
            [int(size) if int(size) >= 0 else None for size in shape.split(",") if size.strip()],
        )
        assert f'"persistable": {str(bool(persist)).lower()}' in row["attributes"]
        assert f'"stop_gradient": {stop.lower()}' in row["attributes"]
        assert (row["kind"] == "parameter") >= bool(trainable)


@feature("paddle", "ops, inputs and outputs by slot, attributes", "frames `nodes`, `edges`")
def dataflow() -> None:
    assert ops()["op"].tolist() == [kind for kind, *_ in operations()]
    read = trace().edges.groupby("dst")["tensor"].apply(list)
    for node, (kind, inputs, _, _) in zip(ops()["node_id"], operations(), strict=True):
        assert read.get(node, []) == inputs, kind
    assert any(row is not None for row in trace().edges["slot"])


@feature("paddle", "op_role", "`phase`")
def role() -> None:
    forward = {"0", "256"}
    told = ops()["phase"]
    for said, number in zip(told, attribute("op_role"), strict=True):
        expected = {"forward"} if number in forward else {"optimizer"} if number == "2" else {"backward", "recompute"}
        assert said in expected, (said, number)


@feature("paddle", "recompute", "phase `recompute`")
def recompute() -> None:
    own = [bool(outputs) and any(".subprog_" in name for name in outputs) and not kind.endswith("_grad") and role == "1"
           for (kind, _, outputs, _), role in zip(operations(), attribute("op_role"), strict=True)]  # fmt: skip
    assert ops()["phase"].eq("recompute").tolist() == own and sum(own)


@feature("paddle", "send_v2, recv_v2, rings, peers, roots", "columns `ring`, `peer`, colors, brief, report")
def rings() -> None:
    kinds = [kind for kind, *_ in operations()]
    moves = [kind.startswith("c_") or kind in ("send_v2", "recv_v2") for kind in kinds]
    peers = zip(attribute("peer"), attribute("root_id"), attribute("root"), strict=True)
    own = [(ring, next((one for one in of if one is not None), None)) if is_moving else (None, None)
           for is_moving, ring, of in zip(moves, attribute("ring_id"), peers, strict=True)]  # fmt: skip
    number = ops()[["ring", "peer"]].astype(object).where(ops()[["ring", "peer"]].notna(), None)
    assert [tuple(None if one is None else str(one) for one in row) for row in number.values.tolist()] == own
    colored = nbkit.opgraph(trace(), color="ring").overlay["category"]
    assert Counter(colored) == Counter(f"ring {ring}" for ring, _ in own if ring is not None)
    (receive,), (send,) = (
        [of for kind, of in zip(kinds, own, strict=True) if kind == name] for name in ("recv_v2", "send_v2")
    )
    comes, goes = (f"rank {peer} of ring {ring}" for ring, peer in (receive, send))
    said = f"This stage receives from {comes} and sends to {goes}."
    assert trace().brief().startswith(said) and said in opened(trace()) and said in " ".join(trace().summary().split())


@feature("paddle", "mesh, dims_mapping, dp 2 x pp 2 x mp 1", "column `mesh`, brief, attributes")
def mesh() -> None:
    own = [
        re.search(r"process_mesh \(?.*?shape: (\[.*?\]), process_ids: (\[.*?\]), dim_names: \[(.*?)\]", of)
        for *_, of in operations()
    ]
    sizes = [of and zip(of[3].split(","), literal_eval(of[1]), strict=True) for of in own]
    named = [of and ", ".join(f"{name} {size}" for name, size in of) for of in sizes]
    ranks = [of and literal_eval(of[2]) for of in own]
    texts = [name and f"{name}: ranks {', '.join(map(str, of))}" for name, of in zip(named, ranks, strict=True)]
    assert [None if of != of else of for of in ops()["mesh"].astype(object)] == texts
    largest = max(filter(None, ranks), key=len)
    said = f"The mesh is {named[ranks.index(largest)]} over {len(largest)} ranks."
    assert said in " ".join(trace().brief().split())
    assert any("dims_mapping" in row for row in ops()["attributes"].dropna())


def parameters_updated() -> list[str]:
    """The parameter of each adamw, in order."""
    return [re.search(r"[ {]Param=\['(.*?)'\]", of)[1] for of in text().splitlines() if "} = adamw(" in of]


@feature("paddle", "sharding: who owns, who receives", "meta, brief")
def sharding() -> None:
    updated = parameters_updated()
    sent = {inputs[0] for kind, inputs, *_ in operations() if kind == "c_broadcast"}
    known = trace().meta["paddle"]["sharding"]
    assert known["owned"] == updated and set(known["received"]) == sent - set(updated)
    assert f"{len(updated)} parameters updated here, {len(sent - set(updated))} received" in " ".join(
        trace().brief().split()
    )


@feature("paddle", "op_device, namescope", "`device`, attributes")
def devices() -> None:
    own = [None if not of or not of.strip() else of.strip() for of in attribute("op_device")]
    assert [None if of != of else of for of in ops()["device"].astype(object)] == own
    for row, scope in zip(ops()["attributes"], attribute("op_namescope"), strict=True):
        assert scope is None or f'"op_namescope": "{scope.strip()}"' in row


@feature("paddle", "LLaMA parts: layers, attention, MLP, norms, rotary, head, loss", "`role`, `parts.evidence`",
         lacks="this stage has no embedding")  # fmt: skip
def parts() -> None:
    sizes = LlamaConfig()
    layer = 4 * sizes.hidden_size**2 + 3 * sizes.hidden_size * sizes.intermediate_size + 2 * sizes.hidden_size
    blocks = trace().parts.query("role == 'block' and phase == 'forward'")
    assert blocks["params"].tolist() == [layer] * 2
    assert {"attention", "mlp", "norm", "head", "loss"} <= set(trace().parts["role"].dropna())
    forward = ops()[ops()["phase"] == "forward"]
    softmax = forward.index[forward["op"] == "softmax"]
    assert set(forward.loc[softmax, "role"]) == {"attention"} and "rotary" in set(ops()["role"].dropna())


@feature("paddle", "AMP, gradient clip, AdamW", "`inserted`, parts; a node is called by its parameter")
def optimizer() -> None:
    updated = parameters_updated()
    assert ops().loc[ops()["op"] == "adamw", "name"].tolist() == updated
    assert "gradient_clip" in set(trace().parts["name"])
    unscaled = ops()[ops()["op"].isin(["check_finite_and_unscale", "update_loss_scaling"])]
    own = [kind for kind, *_ in operations() if kind in set(unscaled["op"])]
    assert set(unscaled["inserted"]) == {"amp"} and unscaled["op"].tolist() == own


@feature("paddle", 'stray "1122" in line 1218', "`skipped_lines`")
def stray() -> None:
    (own,) = [number for number, line in enumerate(text().splitlines(), 1) if re.match(r"\s*\d+\{", line)]
    assert [row["line"] for row in trace().meta["skipped_lines"]] == [own]
    assert len(ops()) == len(operations())


@feature("paddle", "graph in the notebook", "`%opgraph 'llama.prog'`")
def notebook() -> None:
    text()
    assert "This stage receives from" in in_notebook(f"%opgraph '{PROGRAM}'")


@feature("paddle", "graph as a page, open at what repeats", "`nbkit graph llama.prog -o l.html`")
def page() -> None:
    outline, errors = on_page(trace())
    assert re.search(r"block × 2\b", outline) and not errors


@cache
def exported() -> nbkit.Trace:
    text()
    with torch.device("meta"):
        model, ids = Llama(LlamaConfig(num_hidden_layers=2)), torch.zeros(8, 2048, dtype=torch.long)
    return nbkit.opgraph(torch.export.export(model, (ids, ids)), against=PROGRAM)


def held_against(found: nbkit.Trace) -> None:
    """Every weight but that of the embedding is paired with one of its sizes, as it is or transposed."""
    rows = found.correspondence.query("level == 'parameter' and action == 'match'")
    with torch.device("meta"):
        own = {name: list(of.shape) for name, of in Llama(LlamaConfig(num_hidden_layers=2)).named_parameters()}
    own.pop("model.embed_tokens.weight")
    assert set(rows["left_name"]) == set(own)
    declared = {
        name: [int(size) for size in shape.split(",") if size.strip()]
        for _, _, name, shape, *_ in VARIABLE.findall(text())
    }
    for row in rows.itertuples():
        assert declared[row.right_name] in (own[row.left_name], own[row.left_name][::-1])


@feature("paddle", "against a live LLaMA: frames", '`opgraph(step, against="llama.prog")`')
def live() -> None:
    held_against(exported())
    paired = exported().correspondence.query("level == 'op' and action == 'match'")["right_op"]
    assert {"matmul_v2", "rsqrt", "silu"} <= set(paired)


@feature("paddle", "against a live LLaMA: shown", "cell, summary, report, CLI")
def shown() -> None:
    count = len(exported().correspondence.query("level == 'parameter' and action == 'match'"))
    assert f"Parameters: {count} on both sides" in opened(exported()) and "parameters" in exported().summary()
    assert nbkit.GraphView(exported()).graph


@feature("paddle", "against a step counted by `opcost` with its model made inside", "same")
def counted() -> None:
    text()
    with nbkit.opcost() as step:
        model, ids = Llama(LlamaConfig(num_hidden_layers=2)), torch.zeros(8, 64, dtype=torch.long)
        model(ids, ids).backward()
    held_against(nbkit.opgraph(step, against=PROGRAM))
