"""Plants faults in training steps: models, the lot that draws faults, one run each, tables."""
