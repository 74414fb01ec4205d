"""The robot as recursions see it: canonical frames, joints, sweeps over the tree."""
