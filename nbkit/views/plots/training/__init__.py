"""Pictures of training: of its steps, and of what each layer gets."""
