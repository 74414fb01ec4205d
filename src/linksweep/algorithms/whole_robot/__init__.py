"""Poses, Jacobians, momentum, energy, the regressor."""
