"""Records a step: the mode that sees its aten ops, and the Recorder with its observers."""
