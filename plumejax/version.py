"""version: the one place where the version stands; read by the build without importing JAX."""

__version__ = "0.1.0"
