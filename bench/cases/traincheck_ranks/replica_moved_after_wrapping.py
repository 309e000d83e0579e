"""After model.cpu() and back the hooks that average gradients are gone: each replica trains on its own data.

Fact: had equal values
Fact: each is trained on its own
Where: of Net and
Report: PyTorch 104336
"""

import copy

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 5)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def averaged(replicas):
    """Hooks on the parameters as they are now."""
    for parameters in zip(*(replica.parameters() for replica in replicas), strict=True):
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(lambda p: p.grad.div_(2))


def moved(model):
    """As a move to another device and back does where parameters are new tensors."""
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            module._parameters[name] = torch.nn.Parameter(parameter.detach().clone())
    return model


replicas = [Net()]
replicas.append(copy.deepcopy(replicas[0]))
averaged(replicas)
replicas = [moved(replica) for replica in replicas]
optimizers = [torch.optim.SGD(replica.parameters(), 0.1) for replica in replicas]
inputs, labels = torch.randn(2, 32, 16), torch.randint(0, 5, (2, 32))


def step(i=0):
    for rank, (replica, optimizer) in enumerate(zip(replicas, optimizers, strict=True)):
        loss = F.cross_entropy(replica(inputs[rank]), labels[rank])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
