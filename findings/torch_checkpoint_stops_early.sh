#!/bin/sh
# Where checkpoint(use_reentrant=False) computes a part again, it stops in the middle: the last module's forward hook is not called.
# Versions: torch 2.13.0.
# A good guess: in the backward pass the checkpointed function runs a second time from its first line to its last.
# Seen: it is left by an exception once the last tensor that the backward pass needs is there. Pre-hooks and hooks of the last
# module come in unequal numbers, so that what they push and pop (timers, profiler ranges, module stacks) is off by one from
# there; code behind the last saved tensor runs once. set_checkpoint_early_stop(False) runs all of it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - <<'EOF'
import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop


def calls(stops):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3))
    began, ended, finished = [], [], []
    for name, module in model.named_children():
        module.register_forward_pre_hook(lambda *_, name=name: began.append(name))
        module.register_forward_hook(lambda *_, name=name: ended.append(name))

    def part(x):
        y = model(x)
        finished.append(True)
        return y

    with set_checkpoint_early_stop(stops):
        checkpoint(part, torch.ones(2, 3, requires_grad=True), use_reentrant=False).sum().backward()
    return "".join(began), "".join(ended), len(finished)


early, whole = calls(True), calls(False)
print("modules begun, ended, times at the last line:", early, "without the stop:", whole)
assert early == ("012012", "01201", 1)
assert whole == ("012012", "012012", 2)
EOF
