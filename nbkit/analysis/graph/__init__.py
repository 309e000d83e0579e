"""Makes graphs from recorded ops."""
