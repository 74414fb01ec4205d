# %% setup
import numpy as np

import linksweep as ls
from linksweep import motion

arm = ls.robots.planar(2)
start, end = arm.pose([0.3, 0.8], "tool"), arm.pose([0.5, 0.6], "tool")
# %% motion.Arc
arc = motion.Arc(
    start, (start[:3, 3] + end[:3, 3]) / 2 + [0.1, 0, 0], end, 1.0
)
arc(0.5).pose[:3, 3]
# %% motion.Branches
puma = ls.robots.puma560()
found = puma.inverse_kinematics_branches(
    puma.pose([0.3, -0.5, 0.2, 0.7, 0.0, 0.4], "tool"), "tool"
)
assert isinstance(found, motion.Branches)
found.form, found.count, found.singular
# %% motion.CubicSpline
motion.CubicSpline([[0.0], [1.0], [0.5]], [0.0, 1.0, 2.0])(1.0).qd
# %% motion.Cycloid
motion.Cycloid([0.0], [0.1], 2 * np.pi / 10)(5.0).q
# %% motion.Followed
way = ls.follow(
    arm,
    "tool",
    motion.Line(start, end, 1.0),
    [0.0, 0.5, 1.0],
    q0=[0.3, 0.8],
    position_only=True,
)
way.reason
# %% motion.FrameMotion
motion.Line(start, end, 1.0)(0.5).twist
# %% motion.InverseKinematics
found = ls.inverse_kinematics(
    arm, [3.0, 0.0, 0.0], "tool", position_only=True
)
found.solved, found.reason
# %% motion.JointMotion
q, qd, qdd = motion.Quintic([[0.0, 0.0], [1.0, 2.0]], [0.0, 1.0])(
    np.linspace(0, 1, 5)
)
q.shape
# %% motion.Line
motion.Line(start, end, 1.0)(1.0).pose[:3, 3] - end[:3, 3]
# %% motion.Motion
isinstance(motion.Quintic([[0.0], [1.0]], [0.0, 1.0]), motion.Motion)
# %% motion.NormalSpline
motion.NormalSpline([[0.0], [1.0]], [0.0, 1.0])(0.5).q
# %% motion.Path
isinstance(motion.Line(start, end, 1.0), motion.Path)
# %% motion.Quintic
motion.Quintic([[0.0], [1.0]], [0.0, 2.0])(1.0)
# %% motion.QuinticSpline
motion.QuinticSpline([[0.0], [1.0], [0.0]], [0.0, 1.0, 2.0])(1.0).q
# %% motion.Trapezoid
motion.Trapezoid([[0.0], [1.0]], velocity=1.0, acceleration=2.0).duration
# %% motion.inverse_kinematics_branches
puma = ls.robots.puma560()
found = motion.inverse_kinematics_branches(
    puma, puma.pose(np.full(6, 0.5), "tool"), "tool", limits=False
)
found.count, found.q[0]
