"""The first sentence of every verb is the same in notebook, brief and terminal, short, and in words of the field."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
import torch
from torch import nn

import nbkit
from nbkit.trace.trace import Trace
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.view import view_of

LONGEST = 220
# Words of our own, and figures of how something was recorded, which answer nothing.
BANNED = re.compile(
    r"\b(twins?|parted|parting|kept|keeper|looker|second look|lazy bits|uncollected|told|overhead|recorder|skipped)\b",
    re.I,
)


class Unit(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.norm(dim=-1, keepdim=True)
        return torch.where(length > 0, x / length, 0)


def net(epsilon: float = 1e-5) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8, eps=epsilon), nn.GELU(), nn.Linear(8, 2))


def step_of(model: nn.Module) -> Callable[[], torch.Tensor]:
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> torch.Tensor:
        loss: torch.Tensor = model(torch.arange(12.0).reshape(3, 4).tril()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def recorded(verb: str, step: Callable[[], object], **options: object) -> Trace:
    with getattr(nbkit, verb)(**options) as trace:
        step()
    assert isinstance(trace, Trace)
    return trace


def replayed(folder: Path) -> Trace:
    recorded("opcapture", step_of(net()), folder=folder / "calls")
    return nbkit.opreplay(folder / "calls")


BFLOAT16 = {"dtype": "bfloat16", "ops": "aten.addmm*"}
MAKERS: dict[str, Callable[[Path], Trace]] = {
    "optrace": lambda _: recorded("optrace", step_of(net())),
    "optrace with values": lambda _: recorded("optrace", step_of(net()), values="stats"),
    "optime": lambda _: nbkit.optime(warmup=1, repeats=3).run(step_of(net())),
    "opcheck": lambda _: recorded("opcheck", step_of(net())),
    "opcheck of a fault": lambda _: recorded("opcheck", step_of(nn.Sequential(Unit(), net()))),
    "opdiff": lambda _: recorded("opdiff", step_of(net())),
    "opaudit": lambda _: recorded("opaudit", step_of(net())),
    "opcost": lambda _: recorded("opcost", step_of(net())),
    "opstable": lambda _: recorded("opstable", step_of(net())),
    "opfallback": lambda _: recorded("opfallback", step_of(net()), ops="aten.mm*"),
    "opcast": lambda _: recorded("opcast", step_of(net()), **BFLOAT16),
    "opcast, dry": lambda _: recorded("opcast", step_of(net()), **BFLOAT16, dry_run=True),
    "opcapture": lambda folder: recorded("opcapture", step_of(net()), folder=folder / "calls"),
    "opreplay": replayed,
    "opbisect": lambda _: nbkit.opbisect(step_of(net()), check=lambda loss: bool(loss > 1e9)),
    "opgraph": lambda _: nbkit.opgraph(net()),
    "opgraph of a trace": lambda _: nbkit.opgraph(recorded("optrace", step_of(net()))),
    "opalign": lambda _: nbkit.opalign(net(), net(0.01), inputs=torch.ones(3, 4)),
    "opalign of equals": lambda _: nbkit.opalign(net(), net(), inputs=torch.ones(3, 4)),
    "load": lambda folder: nbkit.load(recorded("optrace", step_of(net())).save(folder / "trace")),
}  # fmt: skip
SAID = {
    "optrace": "124 ops in 5 modules, 74 parameters.",
    "opcapture": "calls saved to calls",
    "opgraph": "5 modules, 74 parameters.",
    "opalign": "First difference: 1 (aten.native_layer_norm.default), the norm has epsilon 1e-05 on the left, "
    "0.01 on the right; relative error",
    "opbisect": "The step fails also with every op on the CPU",
    "opcast, dry": "would change the loss most",
}


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s+(?=[\w(])", " ".join(text.split()), maxsplit=1)[0]


def text_of(html: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return unescape(re.sub(r"<(?!/?(?:p|li|div)\b)[^>]*>", "", body).replace("<", " <")).strip()


def shown_text(html: str) -> str:
    return re.sub(r"<[^>]*>", "", text_of(html))


@pytest.mark.parametrize("verb", MAKERS)
def test_every_face_begins_with_the_same_short_sentence(verb: str, tmp_path: Path) -> None:
    trace = MAKERS[verb](tmp_path)
    sentence = first_sentence(trace.brief())
    faces = {"terminal": trace.summary(), "saved notebook": shown_text(static_table(trace))}
    widget = view_of(trace).widget(trace)
    if hasattr(widget, "html"):
        faces["notebook"] = shown_text(widget.html)
    assert {name: first_sentence(text) for name, text in faces.items()} == dict.fromkeys(faces, sentence)
    assert len(sentence) <= LONGEST and not BANNED.search(sentence)
    assert SAID.get(verb, "") in sentence
