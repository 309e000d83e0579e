"""What optime finds in real steps: source lines without stacks, and what takes time that could be saved."""

import time

import pytest
import torch
from torch import nn
from torch.nn import functional

from nbkit.capture.native.library import library
from nbkit.compat.torch_versions import NAMES_OVERLOADS
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY
from tests.capture.timed import named, timed

needs_library = pytest.mark.skipif(library() is None, reason="source lines come from the built recorder")
X, Y = torch.randn(512, 16), torch.randint(0, 4, (512,))


class Attention(nn.Module):
    """Causal attention of single ops."""

    def __init__(self):
        super().__init__()
        self.qkv, self.drop = nn.Linear(32, 96), nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, -1, 3, 4, 8).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / 8**0.5
        scores = scores.masked_fill(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1), float("-inf"))
        return (self.drop(scores.softmax(-1)) @ v).transpose(1, 2).reshape(x.shape)


class CastLinear(nn.Linear):
    """Casts its weight in each call."""

    def forward(self, x):
        return functional.linear(x.to(torch.bfloat16), self.weight.to(torch.bfloat16)).float()


def rules(trace):
    return trace.findings["rule"].tolist()


def after_warm_up(step, **options):
    step()
    return timed(step, **options)


@needs_library
def test_ops_have_the_line_they_come_from_without_stacks():
    model = nn.Linear(16, 4)

    def step():
        out = model(X)
        out.mean().backward()

    trace = timed(step)
    here, line = step.__code__.co_filename, step.__code__.co_firstlineno
    assert {*named(trace, "aten.addmm.default")["source"].str.rpartition(":")[2]} == {str(line + 1)}
    assert {*named(trace, "aten.mean.default")["source"].str.rpartition(":")[2]} == {str(line + 2)}
    assert here.endswith(trace.lines["source"].iloc[0].rpartition(":")[0])
    assert trace.lines["text"].tolist() == ["out = model(X)", "out.mean().backward()"]
    stacks = timed(step, stacks=True)
    assert {*named(stacks, "aten.addmm.default")["source"]} == {*named(trace, "aten.addmm.default")["source"]}


@needs_library
def test_blocks_and_optimizers_have_lines():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)

    def step():
        with torch.profiler.record_function("block"):
            model(X).mean().backward()
        optimizer.step()

    trace = timed(step)
    texts = dict(zip(trace.lines["source"], trace.lines["text"], strict=True))
    assert [texts[source] for source in named(trace, "block")["source"]] == [
        'with torch.profiler.record_function("block"):'
    ]
    assert {texts[source] for source in named(trace, "aten.add_.Tensor")["source"]} == {"optimizer.step()"}


@needs_library
def test_values_read_one_by_one_are_found_with_their_line():
    model = nn.Linear(16, 4)

    def step():
        total = 0.0
        for loss in functional.cross_entropy(model(X), Y, reduction="none"):
            total += loss.item()

    finding = after_warm_up(step).findings.iloc[0]
    assert (finding["rule"], finding["count"], finding["source_text"]) == ("scalar_reads", 512, "total += loss.item()")


@pytest.mark.skipif(not NAMES_OVERLOADS, reason="this torch does not tell what to() was asked for")
def test_casts_are_found():
    casts = nn.Sequential(*[CastLinear(1024, 1024, bias=False) for _ in range(8)])
    assert rules(after_warm_up(lambda: casts(torch.ones(1, 1024)))) == ["casts"]


def test_attention_and_data_loading_are_found():
    attention = nn.Sequential(Attention(), Attention())
    assert rules(after_warm_up(lambda: attention(torch.ones(2, 512, 32)).mean().backward())) == ["attention"]

    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return torch.tensor(sorted(range(50_000), reverse=True)[index])

    assert rules(after_warm_up(lambda: [batch + 1 for batch in torch.utils.data.DataLoader(Slow(), 4)])) == [
        "data_loading"
    ]


@pytest.mark.parametrize("config", [Llama(LLAMA_TINY), RWKV4(RWKV4_TINY)], ids=["llama", "rwkv4"])
@pytest.mark.parametrize("is_training", [True, False])
def test_sample_models_are_right(config, is_training):
    model, ids = config, torch.randint(0, 50, (2, 16))
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        with torch.set_grad_enabled(is_training):
            logits = model(ids)
            loss = functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
        if is_training:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return loss.item()

    findings = after_warm_up(step).findings
    # A tiny model's optimizer on the CPU does take long.
    assert set(findings["rule"]) <= {"optimizer"}
    assert set(findings["severity"]) <= {"hint"}


def test_training_of_a_convolutional_net_with_amp_is_right():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(7200, 4))
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu")
    images, seen = torch.randn(8, 3, 32, 32), []

    def step():
        for _ in range(40):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = functional.cross_entropy(model(images), Y[:8])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            seen.append(loss.item())

    assert rules(after_warm_up(step)) == []


def test_without_the_recorder_findings_stand_at_modules(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    attention = nn.Sequential(Attention(), Attention())
    trace = after_warm_up(lambda: attention(torch.ones(2, 512, 32)))
    assert len(trace.lines) == 0
    finding = trace.findings.iloc[0]
    assert (finding["rule"], finding["module"], finding["count"]) == ("attention", "0", 2)
    assert trace.findings["source"].isna().all()


@needs_library
def test_errors_in_the_step_leave_no_log_on():
    def step():
        torch.ones(2) @ torch.ones(3)

    for _ in range(2):
        with pytest.raises(RuntimeError):
            timed(step)
    trace = timed(lambda: torch.ones(2).exp())
    assert named(trace, "aten.exp.default")["source"].notna().all()


class Sleeps(nn.Module):
    """Runs no op for long."""

    def forward(self, x):
        time.sleep(0.06)
        return x


def test_a_module_that_sleeps_is_where_the_time_goes():
    model = nn.Sequential(nn.Linear(16, 4), Sleeps())
    (finding,) = after_warm_up(lambda: model(X).sum().backward()).findings.to_dict("records")
    assert (finding["rule"], finding["module"], finding["source_text"]) == ("no_op_ran", "1", "def forward(self, x):")
    assert finding["source"].endswith(f"test_optime_findings.py:{Sleeps.forward.__code__.co_firstlineno}")
    assert finding["message"].endswith("ms of the step no op ran: Sleeps.forward()")
    assert 60_000 <= finding["effect_us"] <= 1.05 * 60_000 + 20_000
