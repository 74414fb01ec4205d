"""Inverse dynamics: one published recursion per file."""
