"""Resampling of images: a kernel computes the position that each element is read at in float32, the index with it.

That is off by a part of eps times the index, which moves the result by as much of the difference between neighbours.
"""

from nbkit.capture.replay.reference import Call

RESAMPLING = ("upsample_", "_upsample_", "grid_sampler_")


def noise_of_positions(call: Call, place: int, eps: float) -> float:
    """What the rounding of positions may add to the result at a place; 0 for an op that has none."""
    if not call.plan.packet.startswith(RESAMPLING):
        return 0.0
    image = call.tensors()[0]
    sides = *image.shape[2:], *call.results().all[place].shape[2:]
    return eps / 4 * max(sides, default=0) * float(image.abs().max()) if image.numel() else 0.0
