"""Kang's explicit model: influence coefficients and augmented bodies."""
