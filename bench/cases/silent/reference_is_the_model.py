"""The reference of a preference loss is another name for the model, so that the log ratio is 0.

Fact: two results
Fact: two passes of one model
Steps: 2
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 50))
reference = policy.eval()
optimizer = torch.optim.AdamW(policy.parameters(), 1e-3)
chosen, rejected = torch.randint(0, 50, (4, 9)), torch.randint(0, 50, (4, 9))


def likelihood(model, ids):
    return model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1).sum(-1)


def step(i=0):
    ids = torch.cat((chosen, rejected))
    with torch.no_grad():
        expected = likelihood(reference, ids)
    better, worse = (likelihood(policy, ids) - expected).chunk(2)
    loss = -F.logsigmoid(0.1 * (better - worse)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
