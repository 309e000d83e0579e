"""Running steps again says which one it is, and which could not be."""

from nbkit.capture.watch.keeper import Keeper
from nbkit.capture.watch.rerun import CannotRunAgainError, Rerun


def test_who_waits_is_told_which_step_runs_again_and_why_one_could_not():
    def fail() -> None:
        raise CannotRunAgainError("its file is gone")

    said, ran = list[str](), list[int]()
    rerun = Rerun(Keeper(1 << 20), [], "audit", said.append)
    assert rerun._attempt(3, lambda: ran.append(3)) and not rerun._attempt(17, fail)
    assert said == [f"running step {number} again to look at it" for number in (3, 17)]
    assert (ran, rerun.limits) == ([3], ["Step 17 could not be run again: its file is gone."])
