"""A reference run that follows the step op by op."""
