"""opbisect is a function and no magic: its trace shows culprits and trials above the ops of the first run."""

from nbkit.verbs.verb import Verb
from nbkit.views.ops_view import led_by
from nbkit.views.sections.bisection import bisection_sections

OPBISECT = Verb("opbisect", view=led_by(bisection_sections))
