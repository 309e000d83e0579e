"""The rows of SUBJECTS name what there is: verbs, frames, and what meta holds."""

from nbkit.schema import TABLES
from nbkit.verbs.registry import VERBS
from nbkit.views.statements.subjects import SUBJECTS

IN_META = {"checked_tensors", "recordings", "step"}


def test_what_can_be_looked_at_is_looked_at_by_a_verb() -> None:
    looks = [subject.look for subject in SUBJECTS if subject.look is not None]
    assert {verb for look in looks for verb in (look.verb, *look.too)} <= {*VERBS}


def test_a_subject_is_told_of_a_frame_or_of_what_meta_holds() -> None:
    assert {name for subject in SUBJECTS for name in subject.of} <= {*TABLES, *IN_META}
