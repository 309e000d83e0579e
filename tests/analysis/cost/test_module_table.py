"""The table of modules, beside what torch itself counts and what hooks see."""

import json
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import nbkit
from nbkit.analysis.cost.module_table import MODULE_TABLE
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace


class Mixed(nn.Module):
    """Convolutions, an attention that returns two results, a residual, a loss outside; one layer never runs."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.ReLU(inplace=True), nn.Flatten(2))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.unused = nn.Linear(8, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8, bias=number > 0) for number in range(2))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x).transpose(1, 2)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        for layer in self.layers:
            x = x + layer(x)
        return self.head(self.norm(x).mean(1))


MODEL, X = Mixed(), torch.randn(2, 3, 16, 16)


def step() -> None:
    with sdpa_kernel(SDPBackend.MATH):  # torch's counter knows no flash attention of the CPU
        nn.functional.cross_entropy(MODEL(X), torch.tensor([1, 2])).backward()


def recorded(recorder: Callable[..., object]) -> Trace:
    with recorder() as trace:  # type: ignore[attr-defined]
        step()
    return trace  # type: ignore[no-any-return]


def rows(trace: Trace, column: str) -> dict[str, object]:
    table = nbkit.module_table(trace)
    MODULE_TABLE.check(table)
    return dict(table.dropna(subset=[column]).set_index("module")[column])


def test_flops_of_each_module_are_those_of_the_flop_counter() -> None:
    with FlopCounterMode(display=False) as counter:
        step()
    counted = {
        name.removeprefix("Mixed").lstrip("."): sum(by_op.values()) for name, by_op in counter.get_flop_counts().items()
    }
    table = nbkit.module_table(recorded(nbkit.opcost)).set_index("module")
    both = (table["forward_flops"] + table["backward_flops"]).to_dict()
    assert both[""] == counted[""] > 0
    for name in ("stem.0", "layers.1", "head"):
        assert both[name] == counted[name] > 0
    assert both["norm"] == both["unused"] == 0
    assert both["layers"] == both["layers.0"] + both["layers.1"]


def test_optime_knows_the_same_of_products_and_convolutions_and_nothing_of_the_others() -> None:
    trace = nbkit.optime(shapes=True).run(step)
    expected = rows(recorded(nbkit.opcost), "forward_flops")
    measured = nbkit.module_table(trace).set_index("module")["forward_flops"]
    assert {name: measured[name] for name in ("", "stem", "layers", "head")} == {
        name: expected[name] for name in ("", "stem", "layers", "head")
    }
    assert measured[["norm", "unused", "stem.1"]].isna().all()


@pytest.mark.parametrize("recorder", ["optrace", "opcost"])
def test_outputs_are_what_forward_hooks_see_and_parameters_what_the_model_names(recorder: str) -> None:
    seen: dict[str, list[int]] = {}
    hooks = [
        module.register_forward_hook(
            lambda _, __, result, name=name: seen.update(
                {name: list((result[0] if isinstance(result, tuple) else result).shape)}
            )
        )
        for name, module in MODEL.named_modules()
    ]
    step()
    for hook in hooks:
        hook.remove()
    trace = recorded(getattr(nbkit, recorder))
    shapes = {name: json.loads(str(shape)) for name, shape in rows(trace, "output_shape").items()}
    assert shapes == {name: seen[name] for name in shapes}
    assert shapes.keys() >= {
        "",
        "stem",
        "stem.0",
        "stem.1",
        "stem.2",
        "attention",
        "layers.0",
        "layers.1",
        "norm",
        "head",
    }
    params = {name: sum(one.numel() for one in module.parameters()) for name, module in MODEL.named_modules()}
    assert rows(trace, "params") == params


def test_held_memory_and_time_are_those_of_the_ops_inside() -> None:
    trace = nbkit.optime(shapes=True, memory=True).run(step)
    held = nbkit.held_at_peak(trace.memory, trace.ops, ["module"]).dropna(subset=["module"])
    inside = held[held["module"].str.startswith("stem")]["held_bytes"].sum()
    assert rows(trace, "held_bytes")["stem"] == inside
    assert rows(trace, "held_bytes")[""] == held["held_bytes"].sum() > 0
    times = nbkit.by_module_tree(trace.ops).set_index("module")["total_time_us"]
    assert rows(trace, "time_us")["attention"] == times["attention"]


def test_what_a_trace_does_not_know_is_null() -> None:
    table = nbkit.module_table(nbkit.optime().run(step))
    assert table[["output_shape", "forward_flops", "backward_flops", "held_bytes"]].isna().all(axis=None)
    assert nbkit.module_table(recorded(nbkit.opcost))["time_us"].isna().all()


def test_an_op_without_a_rule_makes_the_flops_of_what_holds_it_unknown() -> None:
    trace = recorded(nbkit.opcost)
    costs = trace.costs
    is_head = (costs["module"] == "head") & (costs["flops"] > 0) & (costs["phase"] == "forward")
    trace.frames["costs"] = costs.assign(flops=costs["flops"].mask(is_head))
    known = rows(trace, "forward_flops")
    assert "" not in known and "head" not in known and known["stem"]


def test_the_text_fits_a_line_and_says_where_a_trace_is_incomplete() -> None:
    trace = recorded(nbkit.opcost)
    text = nbkit.module_table_text(trace)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100 and len(lines) == 1 + len(nbkit.module_table(trace))
    assert lines[0].split() == [
        "13",
        "modules",
        "of",
        "opcost",
        "type",
        "output",
        "parameters",
        "forward",
        "backward",
        "held",
    ]
    (head,) = (line.split() for line in lines if "· head" in line)
    assert head[:6] == ["·", "head", "Linear", "[2,", "5]", "45"]
    ended = Trace(trace.frames, {**trace.meta, "complete": False, "error": {"type": "ValueError", "message": "x"}})
    text = nbkit.module_table_text(ended)
    assert text.startswith("Incomplete: Stopped by ValueError: ") and "FLOP" not in text and "MiB" not in text


def test_a_trace_without_modules_says_what_records_them() -> None:
    with pytest.raises(OptionError, match="has no modules; opcost, optime and optrace record those that run"):
        nbkit.module_table(Trace({}, {}))


def test_memory_of_no_known_ops_is_held_by_nobody_knows_whom() -> None:
    table = nbkit.module_table(nbkit.opdoctor().run(step))
    assert table["held_bytes"].isna().all() and (table["time_us"] > 0).any()
