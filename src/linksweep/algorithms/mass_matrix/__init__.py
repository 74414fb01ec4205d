"""The mass matrix, its inverse and its factors."""
