"""reduce: from a library that fails on Paddle's torch-compat layer to a minimal reproducible example."""

__version__ = "0.1.0"
