"""opalign(copy_parameters=True): what is copied, what is said of the rest, and what is refused."""

import pytest
import torch
from torch import Tensor, nn

import nbkit
from nbkit.errors import OptionError

X = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))


class Turned(nn.Module):
    """Holds the weight of a linear layer the other way."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(size, size)), nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class Block(nn.Module):
    def __init__(self, linear: type[nn.Module] = nn.Linear, size: int = 8) -> None:
        super().__init__()
        self.first, self.second = (linear(size, size) if linear is nn.Linear else linear(size) for _ in range(2))
        self.before, self.after = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(x + self.second(torch.tanh(self.first(self.before(x)))))


class Language(nn.Module):
    def __init__(self, *, is_tied: bool) -> None:
        super().__init__()
        self.table, self.block, self.head = nn.Embedding(20, 8), Block(), nn.Linear(8, 20, bias=False)
        if is_tied:
            self.head.weight = self.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.block(self.table(ids).flatten(0, 1)))


def seeded(model: nn.Module, seed: int) -> nn.Module:
    """Returns the model with weights of its own, for use."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return model.eval()


def copied(left: nn.Module, right: nn.Module, inputs: Tensor = X) -> nbkit.Trace:
    return nbkit.opalign(left, right, inputs=[inputs], copy_parameters=True)


def pairs(trace: nbkit.Trace) -> dict[str, tuple[str, str]]:
    return {one["right"]: (" + ".join(one["left"]), one["how"]) for one in trace.meta["copied"]}


def said(trace: nbkit.Trace) -> list[str]:
    return [one["reason"] for one in trace.meta["not_copied"]]


def test_norms_of_one_shape_are_told_apart_by_their_place():
    left, right = seeded(Block(), 0), seeded(Block(), 1)
    right.register_module("norm_x", right.before)
    right.register_module("norm_y", right.after)
    trace = copied(left, right)
    assert trace.meta["first_divergence"] is None and said(trace) == []
    assert torch.equal(right.before.weight, left.before.weight) and torch.equal(right.after.bias, left.after.bias)


def test_a_square_weight_of_the_same_name_that_is_held_the_other_way_is_transposed():
    left, right = seeded(Block(), 0), seeded(Block(Turned), 1)
    trace = copied(left, right)
    assert pairs(trace)["first.weight"] == ("first.weight", "transposed")
    assert trace.meta["first_divergence"] is None
    assert torch.equal(right.second.weight, left.second.weight.T)


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_tied_weight_is_copied_to_each_that_is_not_tied(is_tied):
    left, right = seeded(Language(is_tied=True), 0), seeded(Language(is_tied=is_tied), 1)
    trace = copied(left, right, torch.arange(20).reshape(2, 10))
    assert (trace.meta["first_divergence"], said(trace)) == (None, [])
    assert torch.equal(right.head.weight, left.table.weight)


def test_a_head_for_which_a_tied_model_has_no_place_is_said():
    left, right = seeded(Language(is_tied=False), 0), seeded(Language(is_tied=True), 1)
    trace = copied(left, right, torch.arange(20).reshape(2, 10))
    assert said(trace) == ["left head.weight (20, 8) has no place on the right."]
    assert trace.meta["first_divergence"] is not None


def test_a_block_that_only_the_right_one_has_is_said_and_left_as_it_is():
    left = seeded(nn.Sequential(Block(), Block(), nn.Linear(8, 5)), 0)
    right = seeded(nn.Sequential(Block(), Block(), Block(), nn.Linear(8, 5)), 1)
    before = right[2].first.weight.clone()
    trace = copied(left, right)
    assert "right 2.first.weight (8, 8) was left as it is: nothing on the left is in its place." in said(trace)
    assert torch.equal(right[2].first.weight, before)
    assert pairs(trace)["3.weight"] == ("2.weight", "as it is")
    assert torch.equal(right[1].second.weight, left[1].second.weight)
    assert said(trace)[0] in trace.meta["notes"]


def test_of_many_that_are_left_as_they_are_the_first_are_notes():
    left = seeded(nn.Sequential(nn.Linear(8, 5)), 0)
    right = seeded(nn.Sequential(nn.Sequential(*(nn.Linear(8, 8) for _ in range(12))), nn.Linear(8, 5)), 1)
    trace = copied(left, right)
    assert (len(said(trace)), pairs(trace)["1.weight"]) == (24, ("0.weight", "as it is"))
    notes = [note for note in trace.meta["notes"] if note not in said(trace)]
    assert said(trace)[19] in trace.meta["notes"] and said(trace)[20] not in trace.meta["notes"]
    assert "4 more were not copied: meta['not_copied'] has all." in notes


def test_what_runs_only_with_the_values_of_the_left_model_is_copied_too():
    class Chosen(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.scale, self.name = nn.Parameter(torch.zeros(8)), name
            self.add_module(name, nn.Linear(8, 8))

        def forward(self, x: Tensor) -> Tensor:
            x = x * self.scale
            return torch.tanh(self.get_submodule(self.name)(x)) if self.scale[0] > 0 else x

    left, right = seeded(Chosen("first"), 0), seeded(Chosen("other"), 1)
    left.scale.data.abs_()
    right.scale.data.abs_().neg_()
    trace = copied(left, right)
    assert (said(trace), trace.meta["first_divergence"]) == ([], None)
    assert torch.equal(right.other.weight, left.first.weight)


def test_a_right_model_in_another_dtype_keeps_it():
    left, right = seeded(Block(), 0), seeded(Block(), 1).to(torch.bfloat16)
    trace = nbkit.opalign(left, right, inputs=[X], right_inputs=[X.bfloat16()], copy_parameters=True)
    assert said(trace) == [] and trace.meta["first_divergence"] is None
    assert torch.equal(right.first.weight, left.first.weight.bfloat16())


def test_statistics_and_counts_of_a_batch_norm_are_copied():
    left = seeded(nn.Sequential(nn.Conv1d(8, 4, 1), nn.BatchNorm1d(4), nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)), 0)
    for norm in (left[1], left[3]):
        norm.running_mean.copy_(torch.randn(4))
        norm.running_var.copy_(torch.rand(4) + 0.5)
        norm.num_batches_tracked.fill_(7)
    right = seeded(nn.Sequential(nn.Sequential(*[type(one)(*args) for one, args in zip(left, ARGS, strict=True)])), 1)
    trace = copied(left, right, X[..., None].expand(3, 8, 5))
    assert said(trace) == [] and trace.meta["first_divergence"] is None
    assert all(torch.equal(value, left.state_dict()[name[2:]]) for name, value in right.state_dict().items())


ARGS = [(8, 4, 1), (4,), (4, 4, 1), (4,)]


def test_equal_names_of_other_shapes_are_said():
    left, right = (seeded(nn.Sequential(nn.Linear(8, size), nn.GELU(), nn.Linear(size, 4)), size) for size in (6, 7))
    assert said(copied(left, right))[:2] == [
        "right 0.weight (7, 8) was left as it is: left 0.weight is (6, 8).",
        "right 0.bias (7) was left as it is: left 0.bias is (6).",
    ]


class Sum(nn.Module):
    def __init__(self, *names: str) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({name: nn.Linear(8, 8) for name in names})

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.layers.values()
        return first(x) + second(x)


def test_what_fits_in_two_ways_is_left_as_it_is():
    left, right = seeded(Sum("a", "b"), 0), seeded(Sum("p", "r"), 1)
    before = right.layers["p"].weight.clone()
    trace = copied(left, right)
    assert trace.meta["copied"] == [] and torch.equal(right.layers["p"].weight, before)
    assert "these fit equally well: layers.a.weight, as it is; layers.b.weight, as it is." in said(trace)[0]


def test_what_one_alone_fits_is_left_as_it_is_where_others_have_no_place():
    def linears(*more: nn.Module):
        return nn.Sequential(*more, nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))

    left, right = seeded(linears(Block()), 0), seeded(linears(), 1)
    before = right[0].weight.clone()
    trace = copied(left, right)
    assert torch.equal(right[0].weight, before) and pairs(trace) == {"1.weight": ("1.weight", "as it is")}
    reason = "right 0.weight (8, 8) was left as it is: it is not clear that it is 0.first.weight, as it is."
    assert said(trace)[0] == reason


def test_names_decide_where_values_do_not():
    left, right = seeded(Sum("a", "b"), 0), seeded(Sum("b", "a"), 1)
    trace = copied(left, right)
    assert pairs(trace)["layers.a.weight"][0] == "layers.a.weight"
    assert {one["evidence"] for one in trace.meta["copied"]} == {"name"}


def test_what_is_the_same_already_stays_and_gradients_do():
    left, right = seeded(Block(), 0), seeded(Block(), 0)
    right.first.weight.grad = torch.ones(8, 8)
    version = right.first.weight._version
    assert len(copied(left, right).meta["copied"]) == 8
    assert right.first.weight._version == version and right.first.weight.grad is not None


def test_a_right_model_that_cannot_run_keeps_its_weights_but_those_of_equal_names():
    left, right = seeded(Block(), 0), seeded(nn.Sequential(nn.Linear(5, 4)), 1)
    before = right[0].weight.clone()
    trace = copied(left, right)
    assert trace.meta["error"].startswith("the right one ended early")
    assert torch.equal(right[0].weight, before)


@pytest.mark.parametrize(
    ("left", "right", "what"),
    [
        (nn.Linear(8, 8), "b.onnx", "the right side is 'b.onnx'"),
        (nn.Linear(8, 8), "onnx", "the right side is 'onnx'"),
        (torch.tanh, nn.Linear(8, 8), "the left side is of type builtin_function_or_method"),
    ],
)
def test_a_side_that_is_no_module_is_refused_in_one_sentence(left, right, what):
    with pytest.raises(OptionError) as caught:
        nbkit.opalign(left, right, inputs=[X], copy_parameters=True)
    assert what in str(caught.value) and str(caught.value).endswith("; give two modules.")


def test_without_it_nothing_is_written():
    left, right = seeded(Block(), 0), seeded(Block(), 1)
    before = right.first.weight.clone()
    trace = nbkit.opalign(left, right, inputs=[X])
    assert torch.equal(right.first.weight, before) and "copied" not in trace.meta
