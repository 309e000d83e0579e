"""Judges parameters that were copies of each other and are trained apart."""

from nbkit.findings.finding import Finding
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.names import listed_names, some

TIE = "To share them, assign the parameter itself, as in head.weight = embedding.weight; a copy is a second parameter."
SYNC = (
    "Replicas that are to stay equal need the same gradients: average them before each step, also after a model is "
    "moved or wrapped anew. Nothing, if each is to be trained on its own."
)


def parted_copies(audit: Audit) -> list[Finding]:
    """Returns findings of parameters that were equal when the recording began, each trained on its own since."""
    findings = []
    for key in dict.fromkeys((copy.model, copy.other_model) for copy in audit.copies):
        pairs = [copy for copy in audit.copies if (copy.model, copy.other_model) == key]
        names, others = [pair.name for pair in pairs], [pair.other_name for pair in pairs]
        model, other = key
        if model == other:
            what = f"{listed_names(audit, model, names)} and {listed_names(audit, other, others)}"
        else:
            what = f"{some(names)} of {model} and {other}"
        findings.append(
            Finding(
                rule="parted_copy",
                severity="hint",
                message=f"{what} had equal values when the recording began, and differ at its end: each is trained on "
                "its own",
                advice=TIE if model == other else SYNC,
                parameter=names[0] if len(names) == 1 else None,
                count=len(pairs),
                evidence={"parameters": names, "others": others},
            )
        )
    return findings
