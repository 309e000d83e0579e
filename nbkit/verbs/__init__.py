"""The verbs that record: their options as text, for the cell magics and the command line alike."""

from nbkit.verbs.opcheck import OPCHECK
from nbkit.verbs.opdiff import OPDIFF
from nbkit.verbs.optime import OPTIME
from nbkit.verbs.optrace import OPTRACE
from nbkit.verbs.verb import Verb

# A new verb joins by its own file and one entry here.
VERBS: dict[str, Verb] = {verb.name: verb for verb in (OPTRACE, OPTIME, OPDIFF, OPCHECK)}
