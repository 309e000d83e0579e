"""Code that all tables share which are paged from the kernel."""
