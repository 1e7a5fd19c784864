"""adapters: every task as the environments of other libraries."""
