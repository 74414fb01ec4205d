"""The panels beside a scene: joints, layers, time, plots, and the live simulation."""
