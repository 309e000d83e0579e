"""Both sample models on a device, each op beside the CPU in float64: does opdiff raise a false alarm, does it see TF32?

Run from the repository root: `python bench/devices.py [--device cuda]`. Writes out/bench/devices.md. Exits with 1 if a
row is called wrong, or none reduced although TF32 is on. Without an accelerator the device is the simulated one, which
shows that the script runs and says nothing of a GPU.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import torch
from torch import nn

import nbkit
from bench.harness.ratios import markdown, number
from nbkit.numerics.noise_ratio import HARMLESS
from sample_models.llama import LLAMA_SMALL, Llama
from sample_models.rwkv4 import RWKV4, RWKV4Config

OUT = Path(__file__).parents[1] / "out" / "bench" / "devices.md"
MODELS = {
    "llama": (Llama, LLAMA_SMALL),
    "rwkv4": (RWKV4, RWKV4Config(vocab_size=256, context_length=64, width=128, layers=4, head_qk=32)),
}
PRECISIONS = ("float32", "TF32", "bfloat16")
HEAD = ("model", "precision", "compared", "ok", "reduced", "wrong", "largest ratio of an ok row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="such as cuda; the accelerator that torch finds if not given")
    device = chosen(parser.parse_args().device)
    rows, wrong, is_right = [], [], True
    for model in MODELS:
        for precision in PRECISIONS:
            diffs = compared(model, precision, device)
            counts = diffs["status"].value_counts()
            bad = diffs[~diffs["status"].isin(HARMLESS)]
            found = [len(diffs), counts.get("ok", 0), counts.get("reduced", 0), len(bad)]
            ratio = diffs.loc[diffs["status"] == "ok", "noise_ratio"].max()
            rows.append((model, precision, *map(str, found), number(ratio)))
            wrong += [f"- {model}, {precision}: {one.op} in {one.module}: {one.message}" for one in bad.itertuples()]
            is_missed = precision == "TF32" and device.type == "cuda" and not counts.get("reduced", 0)
            is_right = is_right and bad.empty and not is_missed
    title, what = "# A device beside the CPU in float64", f"{named(device)}, torch {torch.__version__}."
    parts = [title, what, markdown(HEAD, rows), *(["Called wrong:", "\n".join(wrong)] if wrong else [])]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n\n".join(parts) + "\n")
    print(text)
    sys.exit(not is_right)


def chosen(name: str | None) -> torch.device:
    """Returns the device of this name, the accelerator that is there, or the simulated one."""
    if name is not None:
        return torch.device(name)
    if torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator()
        assert found is not None
        return found
    return nbkit.SimulatedDevice().torch_device


def named(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"Device {str(device)!r}"


def wait(device: torch.device) -> None:
    """Waits for what runs on a GPU; other devices return when they are done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def compared(name: str, precision: str, device: torch.device) -> pd.DataFrame:
    """Returns the diffs of two training steps, the second with a filled optimizer state."""
    torch.manual_seed(0)
    make, config = MODELS[name]
    model: nn.Module = make(config).to(device, torch.bfloat16 if precision == "bfloat16" else torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids, targets = (torch.randint(config.vocab_size, (2, 64)).to(device) for _ in range(2))
    with allowing_tf32(precision == "TF32"):
        for number_of_step in range(2):
            with nbkit.opdiff(name=f"{name} {precision} step {number_of_step}") as trace:
                optimizer.zero_grad()
                model(ids, targets).backward()
                optimizer.step()
    return trace.diffs


@contextmanager
def allowing_tf32(is_allowed: bool) -> Iterator[None]:
    """Switches TF32 in CUDA's float32 products on or off, and back at the end."""
    places = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [place.allow_tf32 for place in places]
    for place in places:
        place.allow_tf32 = is_allowed
    try:
        yield
    finally:
        for place, one in zip(places, before, strict=True):
            place.allow_tf32 = one


if __name__ == "__main__":
    main()
