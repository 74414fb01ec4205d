"""Joint motions to feed to the dynamics."""

from linksweep.motion.quintic import JointMotion, Quintic

__all__ = ["JointMotion", "Quintic"]
