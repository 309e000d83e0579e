"""Holds what a watch does beside the script to a share of the script's time: what costs more is done less often."""

from time import perf_counter


class TimeShare:
    """Says whether work is due: as long as what it took is at most `share` of the time since the beginning, 0..1."""

    def __init__(self, share: float) -> None:
        self.share, self.spent, self.began = share, 0.0, perf_counter()

    def is_due(self) -> bool:
        return self.spent <= self.share * (perf_counter() - self.began)

    def __enter__(self) -> None:
        """Inside, time counts as that of the work."""
        self.started = perf_counter()

    def __exit__(self, *error: object) -> None:
        self.spent += perf_counter() - self.started
