# %% setup
import numpy as np

import linksweep as ls

T_left, T_right = np.eye(4), np.eye(4)
T_left[1, 3], T_right[1, 3] = 0.6, -0.6
puma = ls.robots.puma560()
left, right = puma.placed(T_left), puma.placed(T_right)
q = [
    np.array([0.3, -0.7, 0.4, 0.2, 0.5, 0.1]),
    np.array([-0.3, -0.7, 0.4, -0.2, 0.5, -0.1]),
]
still = [np.zeros(6), np.zeros(6)]
pose = np.eye(4)
pose[:3, 3] = (
    left.pose(q[0], "tool")[:3, 3] + right.pose(q[1], "tool")[:3, 3]
) / 2
at = [
    np.linalg.inv(pose) @ arm.pose(x, "tool")
    for arm, x in zip((left, right), q)
]
contacts = [ls.Contact(left, "tool", at[0]), ls.Contact(right, "tool", at[1])]
grasp = ls.Grasp(ls.body(12.0, inertia=(0.3, 0.45, 0.25)), contacts)
# %% Grasp.consistent_velocities
# the box moves by 0.1 m/s along x
rates = grasp.consistent_velocities(q, pose, [0, 0, 0, 0.1, 0, 0])
rates[0]
# %% Grasp.forward_dynamics
found = grasp.forward_dynamics(
    q, still, [np.zeros(6), np.zeros(6)], pose, np.zeros(6)
)
found.object_acceleration
# %% Grasp.grasp_map
grasp.grasp_map(pose).shape
# %% Grasp.internal_force_basis
inside = grasp.internal_force_basis(pose)
inside.shape
# %% Grasp.inverse_dynamics
tau, forces = grasp.inverse_dynamics(q, still, pose, np.zeros(6), np.zeros(6))
forces.sum(axis=0)[3:]  # both hands together carry the weight
