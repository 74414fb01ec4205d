"""The Model as recursions see it: joints, canonical frames, sweeps."""
