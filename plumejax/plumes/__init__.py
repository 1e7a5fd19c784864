"""plumes: what is in the air; one module a model, one interface for all."""
