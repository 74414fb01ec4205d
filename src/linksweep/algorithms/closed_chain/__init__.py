"""Closed chains: the operational space, constraints between frames."""
