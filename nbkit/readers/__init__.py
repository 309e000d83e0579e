"""Files of other tools as traces."""
