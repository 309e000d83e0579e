"""Mean pooling divides by the number of tokens, which is 0 for an empty text.

Fact: nan
Fact: aten.div
Line: return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Pool(torch.nn.Module):
    def forward(self, x, mask):
        return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


class TextClassifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(40, 32, padding_idx=0)
        self.pool = Pool()
        self.head = torch.nn.Linear(32, 3)

    def forward(self, ids):
        return self.head(self.pool(self.embedding(ids), (ids != 0).float()))


net = TextClassifier()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
ids, labels = torch.randint(1, 40, (16, 12)), torch.randint(0, 3, (16,))
ids[5] = 0


def step(i=0):
    loss = F.cross_entropy(net(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
