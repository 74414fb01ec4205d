"""Inverse kinematics in closed form, all branches: chains of six joints with a spherical wrist or three parallel axes.

After D. Pieper, "The kinematics of manipulators under computer control", 1968. Joints are screws in the base frame
(exponentials), so that no convention of link frames enters: the chain is e1 e2 ... e6 = G, where G leads from the
frame's pose at q = 0 to its target.
"""

from .recognition import Solver, Unsolvable, recognised

__all__ = ["Solver", "Unsolvable", "recognised"]
