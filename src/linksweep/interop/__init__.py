"""Compiled functions inside other people's programs: JAX, PyTorch."""
