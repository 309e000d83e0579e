"""Models that README.md does not use, each as the one cell that its path asks for, with something to be found in it."""

GPT2 = """\
%load_ext nbkit
import torch
from transformers import GPT2Config, GPT2LMHeadModel


class Slow(torch.nn.Module):
    def forward(self, x):
        for _ in range(150):
            x = x.tan().atan()
        return x


class Log(torch.nn.Module):
    def forward(self, x):
        return x.log()


torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=32, n_embd=64, n_layer=2, n_head=2))
model.transformer.h[1].mlp.act = Slow()
model.transformer.ln_f = Log()
batch = torch.randint(128, (4, 32))


def step():
    model.zero_grad()
    model(batch, labels=batch).loss.backward()
"""

CONVOLUTIONS = """\
%load_ext nbkit
from collections import OrderedDict

import torch

import nbkit

device = nbkit.SimulatedDevice([nbkit.Fault("sigmoid_backward", size=0.25)])
torch.manual_seed(0)
layers = {"first": torch.nn.Conv2d(3, 8, 3), "gate": torch.nn.Sigmoid(), "flat": torch.nn.Flatten()}
model = torch.nn.Sequential(OrderedDict(layers, head=torch.nn.Linear(288, 4))).to("sim")
images = torch.randn(2, 3, 8, 8).to("sim")


def step():
    model(images).square().mean().backward()
"""

# Found by function, by the line of its loop, and by method.
SCRIPT = """\
import sys
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv1d(2, 4, 3), torch.nn.ReLU(), torch.nn.Conv1d(4, 2, 3))
signal = torch.randn(4, 2, 4096)


def train_step(rate):
    model(signal).square().mean().backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight -= rate * weight.grad


class Trainer:
    def step(self):
        for _ in range(TIMES):
            train_step(1e-4)


train_step(float(sys.argv[2]) if sys.argv[1:] else 1e-3)
trainer = Trainer()
FILL
for number in range(4):
    model(signal).sum().backward()
    print("pass", number)
for number in range(14):
    trainer.step()
print("done")
"""


def script(times: int) -> str:
    """The script with its loop at line 41; a step trains so many times."""
    above = SCRIPT[: SCRIPT.index("FILL")].count("\n")
    return SCRIPT.replace("FILL\n", "\n" * (40 - above)).replace("TIMES", str(times))
