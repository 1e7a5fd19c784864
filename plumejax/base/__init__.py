"""base: what every environment here shares; it knows nothing of odour or arms."""
