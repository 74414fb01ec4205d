"""The papers' experiments, runnable."""
