"""Writes and reads folders of captured calls, without torch: records in JSON, values in safetensors, nothing to run."""
