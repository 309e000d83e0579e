"""Values that a step asks for are those of the step that runs, where opcost computes them, and nothing else changes."""

import pytest
import torch
from torch import nn

import nbkit
from bench.cost_stops import apart, result_of
from bench.costs.other_steps import OTHER_STEPS

X, WEIGHT = torch.randn(6, 4), torch.randn(4, 4, requires_grad=True)
LAYER = nn.LSTM(4, 3)


def read_before_a_write(number):
    value = number.item()
    number.fill_(-99.0)
    return value > 0


ASKED = {
    "nonzero": lambda y: (y > 0).nonzero().shape[0],
    "x[mask]": lambda y: y[y > 0].numel(),
    "where": lambda y: len(torch.where(y > 0)[0]),
    "unique": lambda y: len(y.round().unique()),
    "bincount": lambda y: len(y.argmax(1).bincount()),
    "repeat_interleave": lambda y: len(y.repeat_interleave(y.argmax(1), 0)),
    "item": lambda y: y.argmax().item(),
    "bool": lambda y: bool(y.sum() > 0),
    "a comparison of item()": lambda y: y.sum().item() * 2 + 1 > 0,
    "tolist": lambda y: y.argmax(1).tolist(),
    "numpy": lambda y: y.argmax(1).numpy().tolist(),
    "float": lambda y: round(float(y.sum()), 3),
    "behind a write in place": lambda y: bool(y.detach().clone().mul_(2).sub_(y).sum() > 0),
    "behind a write to a view": lambda y: (lambda z: (z[0].zero_(), z.count_nonzero().item())[1])(y.detach().clone()),
    "before a write": lambda y: (lambda z: (lambda n: (z.zero_(), n.item())[1])(z.argmax()))(y.detach().clone()),
    "a number read before a write": lambda y: read_before_a_write(y.sum().detach().clone()),
    "behind an LSTM": lambda y: bool(LAYER(y)[0].sum() > 0),
    "complex": lambda y: bool((torch.fft.fft(y).conj().imag > 0).any()),
    "a gradient": lambda y: bool(torch.autograd.grad(y.sin().sum(), WEIGHT)[0].sum() > 0),
}  # fmt: skip


@pytest.mark.parametrize("way", ["auto", "run"])
@pytest.mark.parametrize("form", ASKED)
def test_what_a_step_asks_for_is_what_it_is_when_the_step_runs(form, way):
    answers = []

    def step():
        answers.append(ASKED[form](X @ WEIGHT))

    trace = nbkit.opcost(values=way).run(step)
    step()
    assert answers[0] == answers[1]
    assert sum(trace.meta["computed_values"].values()) >= 1 and not trace.meta["bounded_values"]


def test_a_loss_that_is_printed_computes_nothing_and_one_that_is_compared_says_where():
    model = nn.Linear(4, 1)

    def step(lines, is_compared):
        loss = model(X).mean().item()
        lines.append(f"{loss:.3f}")
        return is_compared and loss > 1e9

    lines = []
    assert not nbkit.opcost().run(lambda: step(lines, False)).meta["computed_values"] and lines == ["unknown"]
    (where,) = nbkit.opcost().run(lambda: step(lines, True)).meta["computed_values"]
    assert where.startswith("aten._local_scalar_dense (tests/capture/cost/fake/test_asked_values.py:")
    assert (
        "To count it, 1 value of its data was computed: aten." in nbkit.opcost().run(lambda: step(lines, True)).brief()
    )


def test_with_run_a_printed_loss_is_that_of_the_step():
    lines, model = [], nn.Linear(4, 1)
    for run in (nbkit.opcost(values="run").run, lambda step: step()):
        run(lambda: lines.append(f"{model(X).mean().item():.6f}"))
    assert lines[0] == lines[1]


@pytest.mark.parametrize("way", ["auto", "run"])
def test_computing_leaves_parameters_random_state_and_generators_as_they_were(way):
    model, generator = nn.Sequential(nn.Linear(4, 4), nn.Dropout()), torch.Generator().manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    weight, state, own = model[0].weight.detach().clone(), torch.get_rng_state(), generator.get_state()

    def step():
        model(X + torch.randn(6, 4, generator=generator)).sum().backward()
        optimizer.step()
        assert (model[0].weight.sum() == 7) in (True, False)
        assert bool((model[0].weight != torch.tensor(0.0)).any())

    nbkit.opcost(values=way).run(step)
    assert torch.equal(model[0].weight, weight) and model[0].weight.grad is None
    assert torch.equal(torch.get_rng_state(), state) and torch.equal(generator.get_state(), own)


def test_what_takes_too_long_is_bounded_and_where_nothing_bounds_it_refused():
    with nbkit.opcost() as trace:
        large = torch.randn(1 << 15, 1 << 15)
        assert large[large > 0].shape == (1 << 30,)
    assert [*trace.meta["bounded_values"].values()] == [1]
    with (
        pytest.raises(nbkit.CostError, match="which take long to compute; values='run' runs"),
        nbkit.opcost(),
    ):
        assert torch.randn(1 << 15, 1 << 15).sum() > 0


def test_another_way_is_refused_with_the_nearest():
    with pytest.raises(nbkit.OptionError, match="^values='runs' is not known; did you mean 'run'"):
        nbkit.opcost(values="runs")


FEW = [
    "experts by nonzero", "experts by sorted tokens", "TransformerEncoder, mask", "TransformerEncoder, padding",
    "nn.Transformer, mask", "PPO", "LBFGS, strong Wolfe", "sparse embedding bags, sum", "CTC", "lstsq, gels",
    "deep equilibrium", "Hungarian matching", "a careful loop",
]  # fmt: skip


@pytest.mark.parametrize("name", FEW)
def test_steps_that_people_write_are_counted_as_torch_counts_them_when_they_run(name):
    result = result_of(name, OTHER_STEPS[name], "auto")
    assert result is not None and not result.error
    assert apart(result) <= 0.01


def test_a_bound_stands_for_nothing_that_follows_from_constants():
    """A causal mask is compared with that of its size, in Python, and needs no data for it."""
    model, x = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True), torch.randn(2, 4, 8)

    def step():
        mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
        model(x, x, tgt_mask=mask).sum().backward()

    bound, whole = (nbkit.opcost(values=values).run(step) for values in ("bound", "auto"))
    assert bound.complete and not bound.meta["bounded_values"]
    assert bound.costs["flops"].equals(whole.costs["flops"])
