"""The baseline of the policy's loss is not detached, so that this loss trains the critic as well.

Fact: detach
Where: critic
Line: actor_loss = -(likelihoods * (rewards - values)).mean()
Steps: 2
Report: astariul/encode-attend-navigate-pytorch#3, GitHub
Missed: a factor of the log-likelihood that needs a gradient is not told from one that is wanted
"""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
        self.critic = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), 1e-3)
cities = torch.randn(40, 8)


def step(i=0):
    policy, values = Categorical(logits=agent.actor(cities)), agent.critic(cities).squeeze(-1)
    actions = policy.sample()
    rewards = -(actions.float() - cities.sum(-1)).abs()
    likelihoods = policy.log_prob(actions)
    actor_loss = -(likelihoods * (rewards - values)).mean()
    critic_loss = nn.functional.mse_loss(values, rewards)
    optimizer.zero_grad()
    (actor_loss + critic_loss).backward()
    optimizer.step()
    return actor_loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
