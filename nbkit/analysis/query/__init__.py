"""Which rows a table shows: filters, orders, and the columns they read."""
