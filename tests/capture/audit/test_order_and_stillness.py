"""Tests what is said of gradients that are cleared or clipped too early, of what stands still, and of what is kept."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

X, Y = torch.linspace(-2, 2, 64).view(8, 8), torch.arange(8) % 3


def net():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def findings(step, steps=3):
    with nbkit.opaudit() as trace:
        for i in range(steps):
            step(i)
    return list(zip(trace.findings["rule"], trace.findings["severity"], strict=True))


def clipped(order, is_unscaled=True):
    """A step that calls what `order` names; with a GradScaler where it is named."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", enabled="scaler" in order)

    def step(i):
        loss = F.cross_entropy(model(X), Y)
        optimizer.zero_grad()
        for name in order:
            if name == "backward":
                scaler.scale(loss).backward()
            elif name == "clip":
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            elif name == "zero":
                optimizer.zero_grad()
            elif name == "unscale":
                scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()

    return step


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["backward", "clip"], []),
        (["clip", "backward"], [("early_clipping", "warning")]),
        (["clip", "backward", "clip"], []),
        (["backward", "zero"], [("cleared_gradient", "warning")]),
        (["backward", "clip", "scaler"], [("scaled_clipping", "warning")]),
        (["backward", "unscale", "clip", "scaler"], []),
        (["backward", "scaler"], []),
    ],
)
def test_the_order_of_backward_clipping_and_step(order, expected):
    assert findings(clipped(order)) == expected


def test_a_clipping_is_placed_at_its_line():
    step = clipped(["clip", "backward"])
    with nbkit.opaudit() as trace:
        step(0)
        step(1)
    assert trace.findings["source_text"].tolist() == ["nn.utils.clip_grad_norm_(model.parameters(), 0.5)"]
    assert nn.utils.clip_grad._clip_grads_with_norm_.__module__ == "torch.nn.utils.clip_grad"


def test_the_first_clipping_of_scaled_gradients_says_by_how_much():
    with nbkit.opaudit() as trace:
        clipped(["backward", "clip", "scaler"])(0)
    (message,) = trace.findings["message"]
    assert "still multiplied by the loss scale of 65536, to a norm of 0.5" in message
    assert message.endswith("after the scale is taken out, 7.6e-06 is left")


def scheduled(rates):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 1.0)

    def step(i):
        optimizer.param_groups[0]["lr"] = rates[i]
        optimizer.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        optimizer.step()

    return step


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([0.0, 0.1, 0.1, 0.1], []),
        ([0.1, 0.1, 0.1, 0.0], []),
        ([0.1, 0.1, 0.0, 0.0], [("zero_rate", "hint")]),
        ([0.0, 0.0, 0.0, 0.0], [("zero_rate", "warning")]),
    ],
)
def test_a_learning_rate_of_zero(rates, expected):
    assert findings(scheduled(rates), 4) == expected


def keeping(keep):
    """A step that hands its loss, and what it has kept so far, to `keep`."""
    model, kept = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(i):
        loss = F.cross_entropy(model(X), Y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        keep(kept, loss)

    return step


def only_the_last(kept, loss):
    kept[:] = [loss]


def an_average(kept, loss):
    kept[:] = [0.9 * kept[0] + 0.1 * loss] if kept else [loss]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (lambda kept, loss: kept.append(loss), [("kept_graph", "hint")]),
        (an_average, [("kept_graph", "hint")]),
        (lambda kept, loss: kept.append(loss.detach()), []),
        (lambda kept, loss: kept.append(loss.item()), []),
        (only_the_last, []),
    ],
    ids=["losses", "an average", "detached", "numbers", "the last"],
)
def test_graphs_that_stay(keep, expected):
    assert findings(keeping(keep), 5) == expected


def drawing(draw):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(i):
        optimizer.zero_grad()
        F.cross_entropy(model(X + draw(i)), Y).backward()
        optimizer.step()

    return step


def seeded(seed):
    torch.manual_seed(seed)
    return torch.randn(8, 8)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda i: seeded(7), [("repeated_draws", "hint")]),
        (seeded, []),
        (lambda i: torch.randn(8, 8), []),
        (lambda i: torch.randn(8, 8, generator=torch.Generator().manual_seed(3)), []),
        (lambda i: 0.0, []),
    ],
    ids=["one seed", "a seed of each step", "none", "a generator of its own", "no draws"],
)
def test_the_same_random_numbers(draw, expected):
    torch.manual_seed(12345)
    assert findings(drawing(draw)) == expected


OWN = torch.Generator().manual_seed(3)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.randn(8, 8, generator=OWN),
        lambda: torch.empty(8, 8).normal_(generator=OWN),
        lambda: torch.bernoulli(torch.full((8, 8), 0.5), generator=OWN),
        lambda: torch.rand(8, 8, device="meta").shape[0] * 0.1,
    ],
    ids=["randn", "normal_", "bernoulli", "another device"],
)
def test_the_first_step_alone_draws_from_the_generator_of_torch(draw):
    def step(i):
        if i == 0:  # as the iterator of a DataLoader does
            torch.randperm(8)
        return draw()

    assert findings(drawing(step)) == []


def test_dropout_with_one_seed_is_told():
    def draw(i):
        torch.manual_seed(7)
        return F.dropout(torch.ones(8, 8), 0.5)

    assert findings(drawing(draw)) == [("repeated_draws", "hint")]


def test_gumbel_softmax_with_one_seed_is_told():
    def draw(i):
        torch.manual_seed(7)
        return F.gumbel_softmax(torch.ones(8, 8))

    assert findings(drawing(draw)) == [("repeated_draws", "hint")]


def test_of_several_draws_the_first_is_named():
    def draw(i):
        torch.manual_seed(7)
        first = torch.randn(8, 8)
        return first + torch.rand(8, 8)

    step = drawing(draw)
    with nbkit.opaudit() as trace:
        for i in range(3):
            step(i)
    (message,) = trace.findings["message"]
    assert message.startswith("3 steps draw the same random numbers, the first with aten.randn at ")
    assert "`first = torch.randn(8, 8)`" in message


def test_several_steps_after_one_draw_draw_nothing_again():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(i):
        order = torch.randperm(8)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(X[order]), Y[order]).backward()
            optimizer.step()

    assert findings(step) == []


def pair(make_other, is_trained=True):
    one = net()
    other = make_other(one)
    parameters = [*one.parameters(), *(other.parameters() if is_trained else ())]
    optimizer = torch.optim.SGD(parameters, 0.1)

    def step(i):
        optimizer.zero_grad()
        loss = F.cross_entropy(one(X), Y)
        if is_trained:
            loss = loss + F.cross_entropy(other(X + 1), Y)
        else:
            with torch.no_grad():
                other(X)
                for mine, average in zip(one.parameters(), other.parameters(), strict=True):
                    average.lerp_(mine, 0.1)
        loss.backward()
        optimizer.step()

    return step


def test_copies_that_are_trained_apart():
    assert findings(pair(copy.deepcopy)) == [("parted_copy", "hint")]
    assert findings(pair(lambda one: net())) == []
    assert findings(pair(copy.deepcopy, is_trained=False)) == []


def test_clones_of_a_layer_and_tied_weights_are_no_copies():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    clones = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    head = nn.Linear(8, 12, bias=False)
    words = nn.Embedding(12, 8)
    head.weight = words.weight
    model = nn.Sequential(words, clones, head)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    ids = torch.arange(24).view(4, 6) % 12

    def step(i):
        optimizer.zero_grad()
        F.cross_entropy(model(ids).flatten(0, 1), ids.flip(1).flatten()).backward()
        optimizer.step()

    assert findings(step) == []


def frozen(when):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(i):
        if i == when:
            model[0].requires_grad_(False)
        optimizer.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        optimizer.step()

    return step


@pytest.mark.parametrize(
    ("when", "message"),
    [(0, "The optimizer holds 0 (2 tensors)"), (2, "The optimizer changes 0 (2 tensors)"), (9, None)],
)
def test_frozen_parameters_in_an_optimizer(when, message):
    with nbkit.opaudit() as trace:
        step = frozen(when)
        for i in range(4):
            step(i)
    found = trace.findings[trace.findings["rule"] == "frozen_parameter"]["message"]
    assert [text[: len(message or "")] for text in found] == ([message] if message else [])


def test_branches_that_take_turns_and_such_that_stop():
    model = nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 3)])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(i, which):
        optimizer.zero_grad()
        F.cross_entropy(model[which](X), Y).backward()
        optimizer.step()

    assert findings(lambda i: step(i, i % 2), 4) == []
    assert findings(lambda i: step(i, int(i > 0)), 4) == [("stopped_gradient", "hint")]


def test_weights_that_are_drawn_in_the_step():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(i, reset):
        if reset:
            model[0].reset_parameters()
        optimizer.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        optimizer.step()

    with nbkit.opaudit(model) as trace:
        step(0, False)
        step(1, True)
    assert trace.findings["rule"].tolist() == ["reset_parameter"]
    assert findings(lambda i: step(i, False)) == []


def test_inputs_of_zeros_are_told_from_units_that_are_off():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        F.cross_entropy(model(x), Y).backward()
        optimizer.step()

    with nbkit.opaudit() as trace:
        for _ in range(3):
            step(torch.zeros(8, 8))
    assert "what goes into it is 0" in trace.findings["message"].iloc[0]


@pytest.mark.parametrize(("size", "training", "rule"), [(1, True, "lone_sample"), (4, True, None), (1, False, None)])
def test_batch_norms_of_one_sample(size, training, rule):
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    model(torch.randn(4, 2, 8, 8))
    model.train(training)
    with nbkit.opaudit() as trace:
        model(torch.randn(size, 2, 8, 8)).square().mean().backward()
    assert trace.findings["rule"].tolist() == ([rule] if rule else [])


def test_batch_norms_that_nobody_trained():
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))

    def evaluated(i):
        with torch.no_grad():
            model.eval()(X)

    assert findings(evaluated) == [("unset_statistics", "hint")]
    model.train()(X)
    assert findings(evaluated) == []


def test_dropout_of_fused_attention_in_eval_mode():
    class Attention(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5 if self.rate is None else self.rate)

    model = Attention().eval()
    for model.rate, expected in ((None, [("dropout_in_eval", "warning")]), (0.0, [])):
        assert findings(lambda i: model(torch.randn(2, 3, 4, 8)), 1) == expected


FEW = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda model, used_up: used_up, "it was given no parameters, as from a generator or filter that was used up"),
        (lambda model, used_up: [], "it was given no parameters"),
        (
            lambda model, used_up: [*FEW.parameters()],
            "it was given 2 parameters that no optimizer updates",
        ),
        (
            lambda model, used_up: [model.unused],
            "it was given 1 parameter without gradients, while",
        ),
    ],
    ids=["a filter that was used up", "none", "those of another model", "one without a gradient"],
)
@pytest.mark.filterwarnings("ignore:.*empty generator")
def test_what_clip_grad_norm_was_given_is_said(given, message):
    model = net()
    model.unused = nn.Parameter(torch.ones(2))
    used_up = filter(lambda one: one.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(used_up, 0.1)
    with nbkit.opaudit() as trace:
        for _ in range(2):
            optimizer.zero_grad()
            F.cross_entropy(model(X), Y).backward()
            nn.utils.clip_grad_norm_(given(model, used_up), 0.5)
            optimizer.step()
    found = trace.findings[trace.findings["rule"] == "early_clipping"]
    assert [text.startswith(f"clip_grad_norm_ clipped nothing: {message}") for text in found["message"]] == [True]
    assert not found["advice"].str.contains("backward").any()


def test_only_where_no_gradient_was_there_it_says_that_backward_is_to_come_first():
    with nbkit.opaudit() as trace:
        step = clipped(["clip", "backward"])
        for i in range(3):
            step(i)
    found = trace.findings[trace.findings["rule"] == "early_clipping"]
    assert found["message"].tolist() == [
        "clip_grad_norm_ clipped nothing: it ran before backward(), when no gradient was there yet"
    ]
    assert found["advice"].str.startswith("Call backward() first").all()
