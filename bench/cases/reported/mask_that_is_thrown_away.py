"""masked_fill() without the underscore: its result is dropped, and nothing is masked.

Fact: masked_fill
Line: weights.masked_fill(without_media[:, :, None], 0.0)
Steps: 2
Report: lucidrains/flamingo-pytorch#10, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class CrossAttention(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x, media, without_media):
        k, v = self.kv(media).chunk(2, -1)
        weights = (self.q(x) @ k.mT / 4).softmax(-1)
        weights.masked_fill(without_media[:, :, None], 0.0)
        return x + self.out(weights @ v)


words, cross, head = nn.Embedding(70, 16), CrossAttention(), nn.Linear(16, 70)
optimizer = torch.optim.AdamW([*words.parameters(), *cross.parameters(), *head.parameters()], 1e-3)
ids, media = torch.randint(0, 70, (4, 12)), torch.randn(4, 5, 16)
without_media = torch.arange(12)[None] < torch.tensor([[3], [0], [6], [2]])


def step(i=0):
    scores = head(cross(words(ids[:, :-1]), media, without_media[:, :-1]))
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
