"""A step under other conditions costs what one costs that was built so, and everything is as it was afterwards."""

import gc
import warnings
from functools import partial

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import nbkit
from nbkit.capture.cost.what_if.difference import measures
from nbkit.schema.cost import DIFFERENCE
from tests.capture.cost.what_if.cases import Training, costs
from tests.support.garbage import frozen

BF16 = torch.bfloat16
OTHERS = {
    "sgd": torch.optim.SGD,
    "momentum": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9),
    "adagrad": torch.optim.Adagrad,
    "adafactor": torch.optim.Adafactor,
}


@pytest.mark.parametrize(
    ("model", "question", "built"),
    [
        ("Encoder", {"batch_size": 12}, {"batch": 12}),
        ("Encoder", {"sequence_length": 10}, {"length": 10}),
        ("Encoder", {"dtype": BF16}, {"dtype": BF16}),
        ("Recurrent", {"batch_size": 3, "sequence_length": 5, "dtype": BF16}, {"batch": 3, "length": 5, "dtype": BF16}),
        ("Convolutional", {"batch_size": {4: 7}, "dtype": BF16}, {"batch": 7, "dtype": BF16}),
        ("Custom", {"batch_size": 12, "dtype": BF16}, {"batch": 12, "dtype": BF16}),
    ],
)
def test_other_inputs_and_dtypes_cost_what_a_step_costs_that_is_built_so(model, question, built):
    asked = nbkit.what_if(Training(model).step, **question)
    assert measures(asked.changed) == costs(Training(model, **built).step)
    assert measures(asked.baseline) == costs(Training(model).step) != measures(asked.changed)


def accumulating(training):
    """Adds to the gradients that are there."""
    torch.nn.functional.cross_entropy(training.model(training.x), training.y).backward()


def test_gradients_that_are_there_are_in_the_other_dtype_too():
    asked = nbkit.what_if(partial(accumulating, Training("Encoder")), dtype=BF16)
    assert measures(asked.changed) == costs(partial(accumulating, Training("Encoder", dtype=BF16)))


def test_inference_keeps_the_fused_path():
    asked = nbkit.what_if(Training("Encoder").inference, batch_size=12)
    assert measures(asked.changed) == costs(Training("Encoder", batch=12).inference)
    assert "aten._transformer_encoder_layer_fwd.default" in set(asked.changed.costs["op"])


@pytest.mark.parametrize("other", OTHERS)
def test_another_optimizer_costs_what_a_step_costs_that_has_it(other):
    asked = nbkit.what_if(Training("Convolutional").step, optimizer=OTHERS[other])
    assert measures(asked.changed) == costs(Training("Convolutional", optimizer=OTHERS[other]).step)


@pytest.mark.parametrize("steps", [0, 1])
def test_another_optimizer_has_stepped_if_the_first_one_has(steps):
    begin = Training("Recurrent", optimizer=torch.optim.SGD if steps else torch.optim.Adam, steps=steps)
    asked = nbkit.what_if(begin.step, optimizer=torch.optim.AdamW)
    assert repr(asked).startswith("optimizer=AdamW:")
    assert measures(asked.changed) == costs(Training("Recurrent", steps=steps).step)


def test_a_scheduler_does_not_warn_of_another_optimizer():
    training = Training("Recurrent")
    scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 1)

    def step():
        training.step()
        scheduler.step()

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        nbkit.what_if(step, optimizer=torch.optim.SGD)


def test_foreach_with_another_dtype_in_place_of_fused():
    training = Training("Recurrent", optimizer=partial(torch.optim.AdamW, fused=True))
    groups, foreach = snapshot(training)[0], partial(torch.optim.AdamW, foreach=True)
    with frozen():  # else options are put back with all that the garbage collector knows, too
        asked = nbkit.what_if(training.step, foreach=True, dtype=BF16)
    assert same(groups, snapshot(training)[0])
    assert measures(asked.changed) == costs(Training("Recurrent", dtype=BF16, optimizer=foreach).step)
    assert any(op.startswith("aten._foreach_") for op in asked.changed.costs["op"])


def test_another_sdpa_backend():
    training = Training("Encoder")

    def with_math():
        with sdpa_kernel(SDPBackend.MATH):
            training.step()

    asked = nbkit.what_if(training.step, sdpa="math")
    assert measures(asked.changed) == costs(with_math) != measures(asked.baseline)


@pytest.mark.parametrize("form", ["as it is", "by math", "in an attention layer"])
def test_a_backend_that_it_has_already_is_no_mistake(form):
    x, layer = torch.randn(2, 4, 8), nn.MultiheadAttention(8, 2)
    calls = {
        "as it is": (lambda: F.scaled_dot_product_attention(x[None], x[None], x[None]), "flash"),
        "by math": (lambda: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5), "math"),
        "in an attention layer": (lambda: layer(x, x, x, need_weights=False), "flash"),
    }
    step, backend = calls[form]
    assert "unchanged" in repr(nbkit.what_if(step, sdpa=backend))
    with pytest.raises(nbkit.OptionError, match="changes nothing"):
        nbkit.fits(lambda: layer(x, x, x, need_weights=True), "1 GiB", sdpa=backend)


def test_a_checkpoint_saves_memory_and_adds_flops():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)))
    x = torch.randn(32, 64, requires_grad=True)
    asked = nbkit.what_if(lambda: model(x).sum().backward(), checkpoint="0")
    rows = asked.difference.set_index("measure")
    assert rows.loc["saved_bytes", ["baseline", "changed"]].tolist() == [73_728, 8_192]
    assert rows.loc["backward_flops", "change"] == 7_340_032 - 6_291_456 and rows.loc["forward_flops", "change"] == 0


def test_attention_is_checkpointed_that_takes_one_tensor_three_times():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.head = nn.MultiheadAttention(16, 4, batch_first=True), nn.Linear(16, 3)

        def forward(self, x):
            return self.head(self.attention(x, x, value=x, need_weights=False)[0])

    model, x = Block(), torch.randn(2, 8, 16, requires_grad=True)
    asked = nbkit.what_if(lambda: model(x).sum().backward(), checkpoint="attention")
    saved = asked.difference.set_index("measure").loc["saved_bytes"]
    # Its input, and what the head takes: its result is a view of that.
    assert saved["changed"] == 2 * x.nbytes < saved["baseline"]


def test_of_nested_modules_the_outermost_is_checkpointed():
    step = Training("Encoder").step
    layers = nbkit.what_if(step, checkpoint="encoder.layers.*")
    exact = nbkit.what_if(step, checkpoint=["encoder.layers.0", "encoder.layers.1", "encoder.layers.1.linear1"])
    assert measures(layers.changed) == measures(exact.changed)
    assert layers.changed.saved["new_bytes"].sum() < layers.baseline.saved["new_bytes"].sum() / 3


def test_the_code_of_a_checkpoint_needs_what_was_predicted_and_computes_the_same():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 128, dropout=0.0, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), torch.randn(4, 24, 32)

    def step():
        model(x).pow(2).mean().backward()

    asked = nbkit.what_if(step, checkpoint="layers.*")
    predicted, before = nbkit.memory_peaks(asked.changed.memory), nbkit.memory_peaks(asked.baseline.memory)
    step()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    names: dict = {}
    exec(asked.checkpoint_code, names)  # what a user pastes
    names["checkpoint_modules"](model)
    needed = nbkit.memory_peaks(nbkit.opcost().run(step).memory)
    assert needed["peak_bytes"].tolist() == pytest.approx(predicted["peak_bytes"].tolist(), rel=0.01)
    assert needed["peak_bytes"][0] < 0.75 * before["peak_bytes"][0]
    step()
    assert all(map(torch.equal, gradients, [parameter.grad for parameter in model.parameters()]))


def test_the_code_names_each_model_and_without_a_checkpoint_there_is_none():
    one, other, x = nn.Sequential(nn.Linear(8, 8)), nn.Sequential(nn.Linear(8, 8)), torch.ones(2, 8)
    step = lambda: (one(x) + other(x)).sum().backward()  # noqa: E731
    code = nbkit.what_if(step, checkpoint="0").checkpoint_code
    assert "def checkpoint_modules(model_1, model_2):" in code
    assert "for path in ['0']:  # Sequential\n        module = model_1.get_submodule(path)" in code
    assert nbkit.what_if(step, batch_size=4).checkpoint_code == ""
    assert nbkit.fits(step, "1 GiB").checkpoint_code == ""


def test_counters_and_what_the_step_makes_stay_as_they_are():
    model, x, lengths = nn.Linear(16, 4), torch.randn(4, 16), torch.tensor([3, 1, 4, 2])

    def step():
        made = torch.tensor([1.0, 2.0, 3.0, 4.0])
        assert made.shape == (4,) and made.dtype == torch.float32 and int(lengths.max()) == 4
        return model(x) * made

    changed = nbkit.what_if(step, batch_size=8, dtype=BF16).changed
    assert changed.meta["notes"] == [
        "Inputs of the shape [4] were seen as [8].",
        "Inputs of the shape [4, 16] were seen as [8, 16].",
    ]
    assert changed.module_costs["param_bytes"].tolist() == [2 * 68]


def snapshot(training):
    groups = [{**group, "params": [id(each) for each in group["params"]]} for group in training.optimizer.param_groups]
    state = [
        (id(key), name, id(value), value.clone())
        for key, of in training.optimizer.state.items()
        for name, value in of.items()
    ]
    tensors = [*training.model.parameters(), *training.model.buffers(), training.x]
    kept = [(id(each), each._version, id(each.grad), each.dtype, each.clone()) for each in tensors]
    instances = [sorted(vars(module)) for module in (*training.model.modules(), training.optimizer)]
    engine = torch.autograd._engine_run_backward, vars(torch.autograd.Function)["apply"]
    return groups, kept, state, instances, engine


def same(left, right):
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


@pytest.mark.parametrize("fails", [False, True])
def test_all_is_as_it_was(fails):
    training = Training("Convolutional")
    before, calls = snapshot(training), []

    def step():
        training.step()
        calls.append(None)
        if fails and len(calls) == 2:
            raise ArithmeticError("the second time")

    question = {"dtype": BF16, "batch_size": 6, "checkpoint": "norm", "foreach": True, "optimizer": torch.optim.RMSprop}
    if fails:
        with pytest.raises(nbkit.CostError, match="does not run with batch_size=6, .*the second time"):
            nbkit.what_if(step, **question)
    else:
        nbkit.what_if(step, **question)
    assert same(before, snapshot(training)) and len(calls) == 2
    training.step()  # with values again
    assert all(type(each.grad) is torch.Tensor for each in training.model.parameters() if each.grad is not None)


def test_the_difference_is_a_frame_and_the_answer_says_it():
    asked = nbkit.what_if(Training("Recurrent").step, batch_size=8)
    DIFFERENCE.check(asked.difference)
    rows = asked.difference.set_index("measure")
    assert (rows["change"] == rows["changed"] - rows["baseline"]).all()
    assert rows.loc["forward_flops", "ratio"] == 2.0 and pd.isna(rows.loc["all_gather_bytes", "ratio"])
    kinds = rows.index[rows.index.str.startswith("peak_") & (rows.index != "peak_bytes")]
    assert (rows.loc[kinds, ["baseline", "changed"]].sum() == rows.loc["peak_bytes", ["baseline", "changed"]]).all()
    lines = repr(asked).splitlines()
    assert lines[0] == "batch_size=8:" and lines[1].startswith("  peak: ") and " -> " in lines[1]
    assert "(2x)" in next(line for line in lines if "forward FLOPs" in line)
    (parameters,) = [line for line in lines if line.startswith("  parameter: ")]
    assert parameters.endswith(", unchanged") and " -> " not in parameters


def ambiguous():
    first, second = torch.ones(2, 3), torch.ones(4, 5)
    return lambda: (first * 2, second * 2)


def no_inputs():
    model = nn.Linear(4, 4)
    return lambda: model(torch.ones(2, 4))


def fixed():
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    return lambda: model(x).view(2, 2, 2)


@pytest.mark.parametrize(
    ("make", "question", "message"),
    [
        (ambiguous, {"batch_size": 8}, r"not clear, .* \[2, 3\], \[4, 5\]; name the old one, as in batch_size={2: 8}"),
        (ambiguous, {"batch_size": {7: 8}}, "no input of the step has a dimension of size 7"),
        (ambiguous, {"batch_size": 0}, "batch_size is 0; give a whole number from 1 up"),
        (ambiguous, {}, "was given no change; name one"),
        (ambiguous, {"optimizer": torch.optim.SGD}, "runs no optimizer that was made before it"),
        (ambiguous, {"fully_sharded": 4}, "runs no model that was made before it"),
        (ambiguous, {"fully_sharded": 1}, "give the number of ranks, from 2 up"),
        (no_inputs, {"batch_size": 8}, "takes no tensor from outside .*; make its inputs before the step"),
        (fixed, {"checkpoint": "layers.*"}, "matches no module that runs; paths are ''"),
        (fixed, {"sdpa": "flush"}, "no SDPA backend 'flush'; did you mean 'flash'"),
        (fixed, {"sdpa": "flash"}, "sdpa='flash' changes nothing: the step calls no scaled_dot_product_attention"),
        (fixed, {"dtype": torch.int64}, "give a floating dtype such as"),
        (fixed, {"dtype": torch.float32}, "takes no floating tensors of another dtype"),
        (fixed, {"tensor_parallel": 2}, "no Linear layers of the step go from one width to others and back"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(make, question, message):
    with pytest.raises(nbkit.OptionError, match=message):
        nbkit.what_if(make(), **question)


def test_a_step_that_is_bound_to_its_sizes_says_so():
    with pytest.raises(
        nbkit.CostError, match=r"does not run with batch_size=8: shape .*; where sizes do not fit, name"
    ):
        nbkit.what_if(fixed(), batch_size=8)


class Plain(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            parameter -= parameter.grad


class Caching(nn.Linear):
    def forward(self, x, held):
        held.append(x)
        return super().forward(torch.cat(held))


def test_a_module_that_cannot_run_again_says_so():
    model, x = nn.ModuleList([Caching(4, 4)]), torch.ones(2, 4, requires_grad=True)
    with pytest.raises(nbkit.CostError, match="a module that changes what it is given, .* cannot run again"):
        nbkit.what_if(lambda: model[0](x, []).sum().backward(), checkpoint="*")


def test_an_optimizer_without_foreach_and_what_makes_none():
    step = Training("Recurrent", optimizer=Plain).step
    with pytest.raises(nbkit.OptionError, match="Plain has no option foreach"):
        nbkit.what_if(step, foreach=True)
    with pytest.raises(nbkit.OptionError, match="makes a list, not an optimizer"):
        nbkit.what_if(step, optimizer=lambda groups: groups)
    with pytest.raises(nbkit.OptionError, match="No optimizer can be made by optimizer=Optimizer"):
        nbkit.what_if(step, optimizer=torch.optim.Optimizer)


def fake_tensors():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
        return {id(each): each for each in gc.get_objects() if type(each).__name__ == "FakeTensor"}


def test_nothing_is_kept_alive():
    before = fake_tensors()  # torch.compile keeps some of its own
    training = Training("Recurrent")
    asked = nbkit.what_if(training.step, dtype=BF16, batch_size=8)
    assert fake_tensors().keys() <= before.keys()
    assert asked.changed.complete
