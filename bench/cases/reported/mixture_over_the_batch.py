"""The weights of a mixture are normalized over the batch, and summed over the components: they add up to anything.

Fact: dimension
Line: log_weights = F.log_softmax(raw_weights, dim=-2)
Steps: 2
Report: ctallec/world-models#10, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
PARTS = 5


class Dreams(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 32), nn.Linear(32, 3 * PARTS)

    def forward(self, x):
        mean, log_deviation, raw_weights = self.head(self.rnn(x)[0]).chunk(3, -1)
        log_weights = F.log_softmax(raw_weights, dim=-2)
        return mean, log_deviation.exp(), log_weights


model = Dreams()
optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
latents = torch.randn(11, 6, 8)


def step(i=0):
    mean, deviation, log_weights = model(latents[:-1])
    likelihood = Normal(mean, deviation).log_prob(latents[1:, :, :1])
    loss = -torch.logsumexp(log_weights + likelihood, -1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
