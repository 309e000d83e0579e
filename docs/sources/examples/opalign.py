import torch

import nbkit


class Mine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x), approximate="tanh"))


torch.manual_seed(0)
theirs = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
mine = Mine()
mine.load_state_dict(dict(zip(mine.state_dict(), theirs.state_dict().values(), strict=True)))

both = nbkit.opalign(theirs, mine, inputs=(torch.randn(4, 8),))
print(both.meta["first_divergence"]["message"])
print(both.alignment[["mark", "relation", "evidence", "name", "right_name", "output_error"]].to_string())
