"""Vectors, bodies and transforms over any scalar."""
