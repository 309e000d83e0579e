"""Features of OneFlow's nn.Graph log, the run of RWKV-4 under LiBai, each held against an own reading of its lines."""

import ast
import re
from collections import Counter, defaultdict
from datetime import datetime
from functools import cache

import pandas as pd
import torch

import nbkit
from bench.features.dumps import in_notebook, on_page, opened
from bench.features.registry import DATA, feature
from sample_models.rwkv4 import RWKV4, RWKV4_LOG

LOG = DATA / "oneflow_rwkv_graph_debug.log"
TRACED, COMPILED = "GraphBase_0 traced", "GraphBase_0 compiled"
ARGUMENT = re.compile(r"([^\s(),\[\]]+?):\(?sbp=\((.*?)\), size=\(([^)]*)\), dtype=\(oneflow\.(\w+)\)")
OPERATOR = re.compile(r"\(OPERATOR: ?(\S+?)\((.*)\) -> \((.*)\), placement=\((.*?)\)\)$")
MODULE = re.compile(r"^\s*\(MODULE:([^:]+):(\w+)\((.*)\)\): \($", re.MULTILINE)
TENSOR = re.compile(r"\((INPUT|OUTPUT|PARAMETER|BUFFER):([^:]+):tensor\((.*?)\)\)", re.DOTALL)


@cache
def text() -> str:
    return LOG.read_text(encoding="utf-8", errors="replace")


@cache
def trace() -> nbkit.Trace:
    text()
    return nbkit.opgraph(LOG)


@cache
def listing() -> dict[str, tuple[list, list, str]]:
    """Of each op of the compiled graph its arguments, its results and its placement."""
    lines = (OPERATOR.search(line) for line in text().splitlines() if "(OPERATOR:" in line)
    return {one[1]: (ARGUMENT.findall(one[2]), ARGUMENT.findall(one[3]), one[4]) for one in lines if one}


@cache
def tried() -> dict[str, str]:
    """Of each op of the traced graph its text."""
    found = re.findall(r"try to add op: \n(?:: )?(name: .*?)\n\n", text(), re.DOTALL)
    return {re.search(r'name: "(.+?)"', body)[1]: body for body in found}


def nodes(graph: str) -> pd.DataFrame:
    of = trace().nodes
    return of[of["graph"] == graph].set_index("name")


def printed_edges() -> pd.DataFrame:
    of = trace().nodes
    edges = trace().edges.merge(of[["node_id", "name", "graph"]], left_on="dst", right_on="node_id")
    return edges[edges["graph"] == COMPILED]


@feature("oneflow", "file recognized, read", '`nbkit.opgraph("rwkv.log")`')
def recognized() -> None:
    assert trace().meta["source"] == "OneFlow nn.Graph log" and trace().meta["skipped_lines"] == []


@feature("oneflow", "module tree, types, arguments", "frames `parts`, `modules`, meta")
def modules() -> None:
    own = {path: (kind, arguments) for path, kind, arguments in MODULE.findall(text())}
    found = trace().modules
    assert dict(zip(found["module"], found["type"], strict=True)) == {path: kind for path, (kind, _) in own.items()}
    known = trace().meta["oneflow"]["graphs"][0]["module_arguments"]
    assert known == {path: arguments for path, (_, arguments) in own.items() if arguments}
    assert set(own) <= set(trace().parts["module"].dropna())


@feature("oneflow", "parameters", "frames `nodes`, `parts.params`")
def parameters() -> None:
    sizes = {name: ast.literal_eval(re.search(r"size=(\(.*?\))", of)[1]) for kind, name, of in TENSOR.findall(text())
             if kind == "PARAMETER"}  # fmt: skip
    held = nodes(COMPILED).query("kind == 'parameter'")["shape"]
    assert {name: tuple(ast.literal_eval(shape)) for name, shape in held.items()} == sizes
    whole = trace().parts.query("graph == @COMPILED and module == 'model' and phase == 'forward'")["params"]
    assert whole.tolist() == [sum(torch.Size(size).numel() for size in sizes.values())]


@feature("oneflow", "buffer `copy_mask`", "nodes of the kind buffer")
def buffer() -> None:
    (name,) = {name for kind, name, _ in TENSOR.findall(text()) if kind == "BUFFER"}
    assert nodes(TRACED)["kind"][name] == "buffer"
    with torch.device("meta"):
        rows = nbkit.opgraph(RWKV4(RWKV4_LOG), against=trace()).correspondence
    assert rows.loc[rows["right_name"] == name, "action"].tolist() == ["match"]


@feature("oneflow", "traced ops, attributes, source lines", "`nodes` of the traced graph")
def traced() -> None:
    found = nodes(TRACED)
    for name, body in tried().items():
        kind = re.search(r'op_type_name: "(\w+)"', body)
        line = re.findall(r"at \\'([^']+)\\': line (\d+)", body)
        node = found.loc[name]
        assert kind is None or node["op"] == kind[1], name
        assert not line or node["source"] == ":".join(line[-1]), name
        for value in re.findall(r"at_(?:int64|double|bool): (\S+)", body):
            assert value in node["attributes"] or f"{float(value):g}" in node["attributes"], (name, value)
    added = set(re.findall(r"add op : \n(\S+)", text()))
    assert added == set(found.index) - {"model.copy_mask"}


@feature("oneflow", "compiled ops and dataflow", "`nodes`, `edges` of the compiled graph")
def compiled() -> None:
    own = Counter(
        (name, tensor, f"[{', '.join(part.strip() for part in size.split(',') if part.strip())}]", dtype)
        for name, (inputs, _, _) in listing().items() for tensor, _, size, dtype in inputs
    )  # fmt: skip
    edges = printed_edges()
    plain = edges[edges["slot"].fillna("") != "_add_to_output"]
    assert Counter(zip(*(plain[name] for name in ("name", "tensor", "shape", "dtype")), strict=True)) == own
    assert set(nodes(COMPILED).index) == set(listing())


@feature("oneflow", "SBP of each tensor", "columns `sbp`; `--color sbp`; search")
def sbp() -> None:
    own = Counter((name, tensor, of) for name, (inputs, _, _) in listing().items() for tensor, of, *_ in inputs)
    edges = printed_edges()
    plain = edges[edges["slot"].fillna("") != "_add_to_output"]
    assert Counter(zip(plain["name"], plain["tensor"], plain["sbp"], strict=True)) == own
    first = {name: outputs[0][1] for name, (_, outputs, _) in listing().items() if outputs}
    assert nodes(COMPILED)["sbp"].dropna().to_dict() == first
    colored = nbkit.opgraph(trace(), graph=COMPILED, color="sbp")
    assert Counter(colored.overlay["category"]) == Counter(first.values())


@feature("oneflow", "placement, ranks", "`nodes.device`, `--color device`")
def placement() -> None:
    own = {name: "{} {}".format(*re.search(r'type="(\w+)", ranks=(\[.*?\])', of).groups())
           for name, (_, _, of) in listing().items()}  # fmt: skip
    assert nodes(COMPILED)["device"].to_dict() == own


@feature("oneflow", "INPUT/OUTPUT of each module (sbp, is_lazy, grad_fn)", "frame `module_tensors`")
def passed() -> None:
    signs = {"broadcast": "B", "partial_sum": "P"}
    own = {}
    for kind, name, of in TENSOR.findall(text()):
        axes = re.findall(r"oneflow\.sbp\.(broadcast|partial_sum|split\(dim=(\d+)\))", of)
        made = re.search(r"grad_fn=<(\w+)>", of)
        layout = ", ".join(signs.get(word, f"S({axis})") for word, axis in axes)
        own[kind.lower(), name] = (layout, "is_lazy='True'" in of, made and made[1])
    rows = trace().module_tensors
    found = {(row.kind, row.name): (row.sbp, row.is_lazy, row.grad_fn) for row in rows.drop(columns="name").assign(
        name=rows["name"]).astype(object).where(lambda frame: frame.notna(), None).itertuples(index=False)}  # fmt: skip
    assert found == own
    assert Counter(kind for kind, _ in own)["input"] == 95


@feature("oneflow", "forward, backward, optimizer; inserted by amp, autograd, boxing", "`phase`, `inserted`")
def phases() -> None:
    found = nodes(COMPILED)
    ends = {"amp": ("-cast_f2h", "-cast_h2f"), "optimizer": ("_optimizer", "-m", "-v")}
    for reason, words in ends.items():
        names = [name for name in listing() if name.endswith(words) and name not in tried()]
        assert set(found.loc[names, "inserted"]) == {reason}
    boxing = [name for name in listing() if name.startswith("System-Boxing")]
    assert set(found.index[found["inserted"] == "boxing"]) == set(boxing)
    order = list(tried())
    begin = order.index("ones_like-351")
    traced_phases = nodes(TRACED)["phase"]
    ops = [name for name in order if "user_conf" in tried()[name]]
    expected = {name: "backward" if order.index(name) >= begin else "forward" for name in ops}
    assert traced_phases[ops].to_dict() == expected


@feature("oneflow", "results added into another op's output", "edges with the slot `_add_to_output`")
def added() -> None:
    """The residual stream leads past attention and channel mix in the compiled graph, by additions alone."""
    edges = trace().edges
    names = trace().nodes["name"]
    on_way = re.compile(r"add_n-\d+$|\.att\.output-broadcast_matmul-\d+$|cast_\w+$|ln0-layer_norm-\d+$")
    reads = defaultdict(set)
    for row in edges[edges["src"].notna()].itertuples():
        if (
            row.slot == "_add_to_output"
            or not names[row.dst].endswith(tuple("0123456789"))
            or ".att." not in names[row.dst]
        ):
            reads[names[row.dst]].add(names[int(row.src)])
    seen, waiting = set(), ["model.blocks.5-add_n-325"]
    while waiting:
        name = waiting.pop()
        if name not in seen and on_way.search(name) and ".ffn" not in name:
            seen.add(name)
            waiting += reads[name]
    assert "model.blocks.0.ln0-layer_norm-1" in seen
    pruned = [name for name, body in tried().items() if '"add_n"' in body and name not in listing()]
    assert 0 < len(edges[edges["slot"] == "_add_to_output"]) <= len(pruned)


@feature("oneflow", "RWKV roles", "`role`")
def roles() -> None:
    found = nodes(COMPILED)
    forward = found[found["phase"] == "forward"]
    stream = {name for name in listing() if re.fullmatch(r"model\.blocks\.\d-add_n-\d+", name)}
    assert set(forward.index[forward["role"] == "residual"]) == stream
    for role, piece in (("time_mix", ".att"), ("channel_mix", ".ffn")):
        told = forward.index[forward["role"] == role]
        assert len(told) and all(piece in name for name in told)
    assert set(forward.loc[forward["op"] == "layer_norm", "role"]) == {"norm"}


@feature("oneflow", "graph in the notebook", "`%opgraph 'rwkv.log'`")
def notebook() -> None:
    text()
    assert "The loss falls from" in in_notebook(f"%opgraph '{LOG}'")


@feature("oneflow", "graph as a page, open at what repeats", "`nbkit graph rwkv.log -o r.html`")
def page() -> None:
    blocks = len({path for path, kind, _ in MODULE.findall(text()) if kind == "Block"})
    outline, errors = on_page(trace())
    assert f"{blocks} × Block" in outline and not errors


@feature("oneflow", "36 compile passes, stages", "frame `passes`, summary, report")
def passes() -> None:
    times = {}
    for time, word, name in re.findall(
        r"^I\d{8} (\S+) .*? (start|finish) compiling with pass pass_cnt_\d+-(\S+)", text(), re.M
    ):
        times.setdefault(name, {})[word] = datetime.strptime(time, "%H:%M:%S.%f")
    own = {name: (at["finish"] - at["start"]).total_seconds() * 1e6 for name, at in times.items() if len(at) == 2}
    found = trace().passes
    assert set(found["name"]) == set(own)
    assert all(
        abs(row.duration_us - own[row.name]) < 1 for row in found[["name", "duration_us"]].itertuples(index=False)
    )
    assert max(own, key=own.get) in trace().summary() and max(own, key=own.get) in opened(trace())


@feature("oneflow", "memory plan: 7,990.68 MiB, chunks, 242 blocks", "frame `memory_plan`, brief, summary, report",
         lacks="plot_memory draws allocations over time; a plan says none")  # fmt: skip
def memory() -> None:
    plan = trace().memory_plan
    own = [float(size) for size in re.findall(r"needs to allocate \[ (\S+) MiB \]", text())]
    assert plan.query("kind == 'total'")["size_bytes"].tolist() == [round(size * 1e6) for size in own]
    blocks = re.findall(r"MemBlock id: \d+ has num = (\d+) tensor with mem size = (\S+)", text())
    rows = plan.query("kind == 'block'")
    assert list(zip(rows["count"], rows["size_bytes"], strict=True)) == [
        (int(n), round(float(mb) * 1e6)) for n, mb in blocks
    ]
    for said in (trace().brief(), " ".join(trace().summary().split()), opened(trace())):
        assert f"{own[0]:,.2f} MiB" in said


def iterations() -> dict[tuple[int, str], float]:
    """Own reading of LiBai's lines: by iteration and word."""
    own = {}
    for line in re.findall(r"^\[.*iteration: .*", text(), re.MULTILINE):
        step = int(re.search(r"iteration: (\d+)/", line)[1])
        for word in ("consumed_samples", "total_loss", "time", "data_time", "total_throughput", "lr"):
            own[step, word] = float(re.search(rf"\b{word}: (\S+)", line)[1])
        hours, minutes, seconds = map(int, re.search(r"eta: (\d+):(\d+):(\d+)", line).groups())
        own[step, "eta"] = 3600.0 * hours + 60 * minutes + seconds
    return own


@feature("oneflow", "eta, samples, loss, time, data_time, throughput, lr", "frame `metrics`")
def metrics() -> None:
    found = trace().metrics
    words = {"throughput": "total_throughput"}
    named = found["name"].str.split().str[0].replace(words)
    assert dict(zip(zip(found["step"], named, strict=True), found["value"], strict=True)) == iterations()


@feature("oneflow", "curves", "`plot_metrics`, report")
def curves() -> None:
    from nbkit.views.plots import draw_metrics

    figure = draw_metrics(trace())
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])
    own = [value for (_, word), value in iterations().items() if word == "total_loss"]
    assert figure.axes[0].lines[0].get_ydata().tolist() == own
    assert len(nbkit.plot_metrics(trace()).data) == len(boxes)


@feature("oneflow", "config text, world size, data tokens, iterations", "frame `settings`, meta")
def settings() -> None:
    found = trace().settings.set_index("name")["text"]
    config = re.search(r"Contents of args\.config_file=\S+:\n(.*?)\n\[08/24", text(), re.DOTALL)[1]
    assert trace().meta["oneflow"]["config"] == config.split("\n")
    for name, value in re.findall(r"^([a-z][\w.]*)\s*=\s*([\w.]+|\"[^\"]*\")\s*$", config, re.MULTILINE):
        assert found[name] == repr(ast.literal_eval(value)), name
    assert found["world_size"] == re.search(r"World size: (\d+)", text())[1]
    assert found["data_tokens"] == re.search(r"data has (\d+) tokens", text())[1]
    assert found["iterations"] == re.search(r"iteration: \d+/(\d+)", text())[1]


@feature("oneflow", "end of the run: SIGINT, CUDA errors", '`meta["error"]`, INCOMPLETE')
def ending() -> None:
    lines = text().splitlines()
    own = next(number for number, line in enumerate(lines, 1) if "received SIGINT" in line)
    assert trace().meta["error"]["source"] == f"line {own}" and not trace().complete
    for row in trace().meta["oneflow"]["errors"]:
        assert row["text"][:40].strip() in lines[row["line"] - 1]


@feature("oneflow", "mistaken encoding", "note")
def encoding() -> None:
    own = [number for number, line in enumerate(text().split("\n"), 1) if not line.isascii()]
    known = trace().meta["oneflow"]["mojibake"]
    assert [row["line"] for row in known["lines"]] == own
    assert any(f"{len(own)} lines hold text of a mistaken encoding" in note for note in trace().meta["notes"])


@feature("oneflow", "against a live model: parameters", "`opgraph(model, against=...)`")
def live_parameters() -> None:
    with torch.device("meta"):
        model = RWKV4(RWKV4_LOG)
    rows = nbkit.opgraph(model, against=trace()).correspondence.query("level == 'parameter' and action == 'match'")
    own = {name: f"model.{name}" for name, _ in [*model.named_parameters(), *model.named_buffers()]}
    assert dict(zip(rows["left_name"], rows["right_name"], strict=True)) == own


@feature(
    "oneflow", "against a live step: ops", "same", lacks="WKV is one kernel there and a loop here: paired as a part"
)
def live_ops() -> None:
    with torch.device("meta"):
        model, ids = RWKV4(RWKV4_LOG), torch.zeros(8, 16, dtype=torch.long)
    rows = nbkit.opgraph(torch.export.export(model, (ids, ids)), against=trace()).correspondence
    paired = rows.query("level == 'op' and action == 'match' and phase == 'forward'")["right_op"].value_counts()
    kinds = Counter(type(module).__name__ for module in model.modules())
    assert (paired["layer_norm"], paired["broadcast_matmul"]) == (kinds["LayerNorm"], kinds["Linear"])


@feature("oneflow", "words about it", "`trace.brief()`")
def words() -> None:
    losses = [value for (_, word), value in iterations().items() if word == "total_loss"]
    first = trace().brief().split("\n\n")[1]
    assert first.startswith(f"The loss falls from {losses[0]:.3g} to {losses[-1]:.3g}")
