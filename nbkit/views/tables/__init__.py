"""What all tables that are paged from the kernel share."""
