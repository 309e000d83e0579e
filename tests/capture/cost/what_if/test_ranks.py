"""The costs of one of several ranks are those of a model that was built as one rank holds it, and closed forms."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit
from nbkit.capture.cost.what_if.difference import measures

WIDTH, HIDDEN, HEADS, TOKENS, LAYERS = 32, 128, 4, 10, 3


class Block(nn.Module):
    """A transformer block, of which a rank of `ranks` holds its share."""

    def __init__(self, ranks=1):
        super().__init__()
        inner, self.heads = WIDTH // ranks, HEADS // ranks
        self.norm = nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, inner) for _ in range(3))
        self.out = nn.Linear(inner, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, HIDDEN // ranks), nn.GELU(), nn.Linear(HIDDEN // ranks, WIDTH))

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (
            layer(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self, ranks=1):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(50, WIDTH), nn.ModuleList(Block(ranks) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 50)

    def forward(self, ids, again=False):
        x = self.embed(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if again else block(x)
        return self.head(x)


def training(ranks=1, again=False):
    torch.manual_seed(0)
    model, ids = Model(ranks), torch.arange(2 * TOKENS).view(2, TOKENS)
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        optimizer.zero_grad()
        model(ids, again).sum().backward()
        optimizer.step()

    step()
    return model, step


def sent(measured, name):
    return measured[f"{name}_bytes"]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_of_a_tensor_parallel_group_costs_what_its_share_costs(ranks, again):
    _, whole = training(again=again)
    changed = nbkit.what_if(whole, tensor_parallel=ranks).changed
    asked, root = measures(changed), changed.module_costs.iloc[0]
    assert root["forward_flops"] + root["backward_flops"] == asked["forward_flops"] + asked["backward_flops"]
    share = measures(nbkit.opcost().run(training(ranks, again)[1]))
    exact = [name for name in share if not name.startswith(("peak_", "moved_", "all_reduce_"))]
    assert [asked[name] for name in exact] == [share[name] for name in exact]
    assert asked["peak_bytes"] == (pytest.approx(share["peak_bytes"], rel=0.01) if again else share["peak_bytes"])
    assert asked["moved_bytes"] == pytest.approx(share["moved_bytes"], rel=0.15)
    # Of each pair the result, and the gradient of what it takes; with checkpoints once more, but for the last layer
    # of a block, which need not run again.
    reduced = 2 * TOKENS * WIDTH * 4
    passes = LAYERS * (4 + again)
    assert sent(asked, "all_reduce") == 2 * reduced * passes * (ranks - 1) // ranks


def test_a_rank_of_a_fully_sharded_group_holds_its_share_and_what_it_gathers():
    model, step = training()
    asked = nbkit.what_if(step, fully_sharded=4)
    before, now = measures(asked.baseline), measures(asked.changed)
    size = sum(parameter.nbytes for parameter in model.parameters())
    in_blocks = sum(parameter.nbytes for parameter in model.blocks.parameters())
    rest, count = size - in_blocks, len(list(model.parameters()))
    assert now["parameter_bytes"] == now["gradient_bytes"] == size // 4
    assert now["optimizer_state_bytes"] == 2 * size // 4 + 4 * count
    assert sent(now, "all_gather") == (2 * in_blocks + rest) * 3 // 4
    assert sent(now, "reduce_scatter") == size * 3 // 4
    same = ("saved_bytes", "forward_flops", "backward_flops")
    assert [now[name] for name in same] == [before[name] for name in same]
    gathered = asked.changed.storages[asked.changed.storages["kind"] == "gathered"]
    block, grown = in_blocks // LAYERS, 2 * in_blocks // LAYERS
    assert sorted(gathered["size_bytes"]) == sorted([*[block] * LAYERS, *[grown] * LAYERS, rest, rest])
    held = asked.changed.memory.merge(gathered[["allocation_id"]])["delta_bytes"].cumsum()
    assert held.max() == grown + 2 * rest and held.iloc[-1] == 0
    assert asked.changed.memory["allocated_bytes"].tolist() == asked.changed.memory["delta_bytes"].cumsum().tolist()


def test_both_degrees_and_a_dtype():
    _, step = training()
    now = measures(nbkit.what_if(step, tensor_parallel=2, fully_sharded=2, dtype=torch.bfloat16).changed)
    share = Model(2).to(torch.bfloat16)
    size = sum(parameter.nbytes for parameter in share.parameters())
    assert now["parameter_bytes"] == size // 2
    in_blocks = sum(parameter.nbytes for parameter in share.blocks.parameters())
    assert sent(now, "all_gather") == (in_blocks + size) // 2


class Conv1D(nn.Module):
    """A linear layer as GPT-2 of transformers has it: its weight is (in, out)."""

    def __init__(self, width_in, width_out):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width_in, width_out)), nn.Parameter(torch.zeros(width_out))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


def test_linear_layers_whose_weight_lies_the_other_way_are_split_too():
    def step(ranks=1):
        hidden, x = HIDDEN // ranks, torch.ones(TOKENS, WIDTH)
        model = nn.Sequential(Conv1D(WIDTH, hidden), nn.GELU(), Conv1D(hidden, WIDTH))
        return lambda: model(x).sum().backward()

    now, share = (measures(nbkit.what_if(step(), tensor_parallel=2).changed), measures(nbkit.opcost().run(step(2))))
    exact = ("forward_flops", "backward_flops", "parameter_bytes", "gradient_bytes", "saved_bytes")
    assert [now[name] for name in exact] == [share[name] for name in exact]
    assert sent(now, "all_reduce") == TOKENS * WIDTH * 4  # the result; x needs no gradient


def test_a_number_of_ranks_that_divides_no_width_is_refused():
    with pytest.raises(nbkit.OptionError, match="with widths that 3 divides"):
        nbkit.what_if(training()[1], tensor_parallel=3)
