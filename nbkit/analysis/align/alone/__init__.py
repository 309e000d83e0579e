"""What one side has alone: results that nothing was compared with, and outputs in addition."""
