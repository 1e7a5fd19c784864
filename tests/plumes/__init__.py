"""tests/plumes: each plume model against its theory."""
