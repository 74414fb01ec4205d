# %% setup
import numpy as np

import linksweep as ls

arm = ls.robots.planar(3)
q = np.array([0.4, 0.5, -0.3])
# the tool turns on a pin
pin = ls.Constraint("line", "tool", at=arm.pose(q, "tool"))
linkage = arm.with_constraints([pin])
qd = linkage.project_velocity(q, np.ones(3))
# %% Robot.actuated
arm.with_actuated(["joint1", "joint3"]).actuated
# %% Robot.closed_inverse_dynamics
tau = linkage.closed_inverse_dynamics(
    q, qd, linkage.forward_dynamics(q, qd, np.ones(3)), actuated=["joint1"]
)
tau
# %% Robot.constraint_bias
qdd = linkage.forward_dynamics(q, qd, np.zeros(3))
assert np.allclose(
    linkage.constraint_jacobian(q) @ qdd + linkage.constraint_bias(q, qd), 0
)
linkage.constraint_bias(q, qd)
# %% Robot.constraint_error
linkage.constraint_error(q + 0.01)
# %% Robot.constraint_forces
linkage.constraint_forces(q, qd, np.zeros(3))
# %% Robot.constraint_jacobian
assert np.allclose(linkage.constraint_jacobian(q) @ qd, 0)
linkage.constraint_jacobian(q)
# %% Robot.constraints
linkage.constraints[0].kind
# %% Robot.mobility
linkage.mobility(q).degrees_of_freedom
# %% Robot.project
near = linkage.project(q + 0.05)
np.abs(linkage.constraint_error(near)).max() < 1e-9
# %% Robot.project_acceleration
qdd = linkage.project_acceleration(q, qd, np.ones(3))
np.abs(
    linkage.constraint_jacobian(q) @ qdd + linkage.constraint_bias(q, qd)
).max() < 1e-9
# %% Robot.project_velocity
linkage.project_velocity(q, np.ones(3))
# %% Robot.tangent_basis
linkage.tangent_basis(q).shape
# %% Robot.tangent_mass_matrix
linkage.tangent_mass_matrix(q)
# %% Robot.undriven_joints
(
    linkage.with_actuated(["joint1"]).undriven_joints,
    arm.with_actuated(["joint1"]).undriven_joints,
)
# %% Robot.with_actuated
# one motor for one degree of freedom
driven = linkage.with_actuated(["joint1"])
torques = driven.compile("inverse_dynamics")
torques(q, qd, driven.forward_dynamics(q, qd, np.ones(3)))
# %% Robot.with_constraints
arm.with_constraints(
    [ls.Constraint("point", "tool", at=arm.pose(q, "tool"))]
).mobility(q).degrees_of_freedom
# %% Robot.with_springs
wall = np.eye(4)
wall[:3, 3] = 2.0, 1.0, 0.0
sprung = arm.with_springs([ls.Spring("tool", stiffness=100.0, at=wall)])
sprung.inverse_dynamics(q, 0 * q, 0 * q) - arm.inverse_dynamics(
    q, 0 * q, 0 * q
)
# %% Constraint
ls.Constraint("distance", "tool", "link1", length=1.0).rows
# %% Spring
ls.Spring(
    "tool", stiffness=50.0, length=0.2, damping=1.0, at=np.eye(4)
).stiffness
