"""The entropy of the policy is added to the loss where it is to be a bonus: training makes the policy greedy at once.

Fact: entropy
Line: loss = policy_loss + 0.5 * value_loss + 0.01 * entropy
Steps: 2
Report: nebuly-ai/optimate#250, GitHub
Missed: the sign of an entropy in a sum is not looked at: some losses are to make it small
"""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
actor, critic = (nn.Sequential(nn.Linear(7, 32), nn.Tanh(), nn.Linear(32, size)) for size in (5, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-3)
states, actions, returns = torch.randn(32, 7), torch.randint(0, 5, (32,)), torch.randn(32)


def step(i=0):
    policy, values = Categorical(logits=actor(states)), critic(states).squeeze(-1)
    policy_loss = -(policy.log_prob(actions) * (returns - values.detach())).mean()
    value_loss = (returns - values).square().mean()
    entropy = policy.entropy().mean()
    loss = policy_loss + 0.5 * value_loss + 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
