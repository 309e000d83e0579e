"""The causal mask begins one place too late: each token sees the next one, which it is to predict.

Fact: shown_next
Fact: shows each position the next one
Line: hidden = torch.ones(t, t, dtype=torch.bool).triu(2)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)

    def forward(self, x):
        t = x.shape[1]
        hidden = torch.ones(t, t, dtype=torch.bool).triu(2)
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / x.shape[-1] ** 0.5
        return scores.masked_fill(hidden, -1e9).softmax(-1) @ v


vocabulary = 20
net = torch.nn.Sequential(torch.nn.Embedding(vocabulary, 32), Attention(), torch.nn.Linear(32, vocabulary))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
tokens = torch.randint(0, vocabulary, (8, 13))


def step(i=0):
    logits = net(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
