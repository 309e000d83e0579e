"""The accuracy is counted sample by sample, each with two item() calls.

Fact: scalar_reads
Line: correct += int(scores[n].argmax().item() == labels[n].item())
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(256, 32), torch.randint(0, 10, (256,))


def step(i=0):
    scores = net(inputs)
    loss = F.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    correct = 0
    for n in range(len(labels)):
        correct += int(scores[n].argmax().item() == labels[n].item())
    return correct / len(labels)


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
