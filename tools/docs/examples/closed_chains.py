# %% setup
import numpy as np

import linksweep as ls

arm = ls.robots.planar(3)
q = np.array([0.4, 0.5, -0.3])
pin = ls.Constraint("line", "tool", at=arm.pose(q, "tool"))  # the tool turns on a pin
tied = arm.with_constraints([pin])
qd = tied.project_velocity(q, np.ones(3))
# %% Robot.actuated
arm.with_actuated(["joint1", "joint3"]).actuated
# %% Robot.closed_inverse_dynamics
tau = tied.closed_inverse_dynamics(q, qd, tied.forward_dynamics(q, qd, np.ones(3)), actuated=["joint1"])
tau
# %% Robot.constraint_bias
qdd = tied.forward_dynamics(q, qd, np.zeros(3))
assert np.allclose(tied.constraint_jacobian(q) @ qdd + tied.constraint_bias(q, qd), 0)
tied.constraint_bias(q, qd)
# %% Robot.constraint_error
tied.constraint_error(q + 0.01)
# %% Robot.constraint_forces
tied.constraint_forces(q, qd, np.zeros(3))
# %% Robot.constraint_jacobian
assert np.allclose(tied.constraint_jacobian(q) @ qd, 0)
tied.constraint_jacobian(q)
# %% Robot.constraints
tied.constraints[0].kind
# %% Robot.mobility
tied.mobility(q).degrees_of_freedom
# %% Robot.project
near = tied.project(q + 0.05)
np.abs(tied.constraint_error(near)).max() < 1e-9
# %% Robot.project_acceleration
qdd = tied.project_acceleration(q, qd, np.ones(3))
np.abs(tied.constraint_jacobian(q) @ qdd + tied.constraint_bias(q, qd)).max() < 1e-9
# %% Robot.project_velocity
tied.project_velocity(q, np.ones(3))
# %% Robot.tangent_basis
tied.tangent_basis(q).shape
# %% Robot.tangent_mass_matrix
tied.tangent_mass_matrix(q)
# %% Robot.undriven_joints
tied.with_actuated(["joint1"]).undriven_joints, arm.with_actuated(["joint1"]).undriven_joints
# %% Robot.with_actuated
driven = tied.with_actuated(["joint1"])  # one motor for one degree of freedom
torques = driven.compile("inverse_dynamics")
torques(q, qd, driven.forward_dynamics(q, qd, np.ones(3)))
# %% Robot.with_constraints
arm.with_constraints([ls.Constraint("point", "tool", at=arm.pose(q, "tool"))]).mobility(q).degrees_of_freedom
# %% Robot.with_springs
wall = np.eye(4)
wall[:3, 3] = 2.0, 1.0, 0.0
sprung = arm.with_springs([ls.Spring("tool", stiffness=100.0, at=wall)])
sprung.inverse_dynamics(q, 0 * q, 0 * q) - arm.inverse_dynamics(q, 0 * q, 0 * q)
# %% Constraint
ls.Constraint("distance", "tool", "link1", length=1.0).rows
# %% Spring
ls.Spring("tool", stiffness=50.0, length=0.2, damping=1.0, at=np.eye(4)).stiffness
