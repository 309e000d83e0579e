"""opaudit finds what is wrong in a training step. Its trace is shown as the op table below the brief."""

from dataclasses import replace

from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import OPS_VIEW, op_charts
from nbkit.views.plots.picture.static import static_pictures
from nbkit.views.plots.training.gradients import gradients_picture
from nbkit.views.plots.training.steps import steps_picture

OPAUDIT = Verb(
    "opaudit",
    view=replace(
        OPS_VIEW, charts=lambda trace: [*static_pictures(trace, steps_picture, gradients_picture), *op_charts(trace)]
    ),
    recorder=Recorder(
        home="nbkit.capture.audit.opaudit:opaudit",
        summary="find what is wrong in a training step",
        description="Find what is wrong in the training step of this cell: gradients, updates and modes of all "
        "parameters.",
        notes="The findings come first. The cell is to hold a whole step: forward, backward, optimizer.",
        only_in_code=("model", "optimizer"),
    ),
)
