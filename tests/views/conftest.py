"""The views know what each verb's traces show once the verbs are imported, which the package root does at first use."""

import nbkit.verbs.registry  # noqa: F401
