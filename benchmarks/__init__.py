"""benchmarks: the commands behind every number of the README."""
