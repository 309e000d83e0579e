"""Reads memory snapshots of torch.cuda."""
