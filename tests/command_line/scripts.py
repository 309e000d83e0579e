"""Scripts that the command line runs in tests."""

TRAIN = '''\
"""Four steps of training."""
from __future__ import annotations
import sys
import torch


class Trainer:
    def __init__(self):
        self.model = torch.nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x):
        """Loss of one step."""
        loss = self.model(x).sum()
        loss.backward()
        self.optimizer.step()
        return loss


def items():
    yield 1


def main(arguments):
    torch.manual_seed(0)
    trainer = Trainer()
    for number in range(4):
        loss = trainer.step(torch.ones(2, 4))
        print(number, f"{loss.item():.4f}")
        if "--fail" in arguments and number == 2:
            raise ValueError("three is enough")
    print(sys.argv, sys.path[0], __file__, __name__, __spec__)


main(sys.argv[1:])
'''
STEP_LINE = TRAIN.splitlines().index("        loss = self.model(x).sum()") + 1
LOOP_LINE = TRAIN.splitlines().index("    for number in range(4):") + 1

# Interrupted in its second pass, as by Ctrl-C; what is registered for the exit still runs.
INTERRUPTED = """\
import atexit, os, signal, time
import torch
atexit.register(print, "bye")
for number in range(3):
    torch.ones(2) + number
    if number == 1:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
"""

BROKEN = """\
import torch
for number in range(3):
    (torch.ones(2) * 0.0).log()
    (torch.zeros(2) / 0.0).sum()
"""

USER = "import helpers\nfor n in range(3):\n    helpers.work(n)\n"
HELPERS = "import torch\ndef work(n):\n    for _ in range(2):\n        torch.ones(2) + n\n"
