"""Records what stands around the aten ops of a step: API calls, modules, optimizers, compiled regions."""
