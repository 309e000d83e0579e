"""Steps that the tests ask what-if questions of, and that they build as the questions say."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit
from nbkit.capture.cost.what_if.difference import measures


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(16, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.unused = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(3, 3)
        self.head = nn.Linear(4, 10)

    def forward(self, x):
        batch, rows, columns = x.shape
        x = F.dropout(F.relu(self.norm(self.conv(x.view(batch, 1, rows, columns)))), 0.1, self.training)
        return self.head(x.mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x.view(x.shape[0], -1).view(gradient.shape)


class Custom(nn.Module):
    """Calls autograd functions of its own, and reads shapes where a checkpointed part runs again."""

    def __init__(self):
        super().__init__()
        self.weight, self.head = nn.Parameter(torch.ones(16)), nn.Linear(16, 10)

    def forward(self, x):
        def part(y):
            return Square.apply(y).view(y.shape[0], -1, 16) * Square.apply(self.weight)

        return self.head(checkpoint(part, Square.apply(x), use_reentrant=False).mean(1))


MODELS = {kind.__name__: kind for kind in (Recurrent, Convolutional, Encoder, Custom)}


class Training:
    """Holds a step of a model, its optimizer and inputs; `steps` have run for real."""

    def __init__(self, model, batch=4, length=6, dtype=torch.float32, optimizer=torch.optim.AdamW, steps=1):
        torch.manual_seed(0)
        self.model, self.x, self.y = MODELS[model]().to(dtype), torch.randn(batch, length, 16), torch.arange(batch) % 10
        self.x = self.x.to(dtype)
        self.optimizer = optimizer(self.model.parameters())
        for _ in range(steps):
            self.step()

    def step(self):
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(self.x), self.y).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    @torch.no_grad()
    def inference(self):
        return self.model.eval()(self.x)


def costs(step):
    return measures(nbkit.opcost().run(step))
