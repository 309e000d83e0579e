"""The recorder of aten ops and API calls: the modes, the raw record, tensor identities."""
