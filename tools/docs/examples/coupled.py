# %% setup
import numpy as np
from linksweep.robot.coupling import Mimic

import linksweep as ls

full = ls.robots.planar(3)
coupled = ls.CoupledRobot(full, [Mimic("joint3", "joint2", 0.5, 0.1)])  # q3 = q2 / 2 + 0.1
q, qd = np.array([0.2, 0.4]), np.array([1.0, 0.5])
# %% CoupledRobot
print(coupled)
# %% CoupledRobot.bias_forces
coupled.bias_forces(q, qd)
# %% CoupledRobot.difference
coupled.difference(q, q + 0.1)
# %% CoupledRobot.expand
coupled.expand(q)
# %% CoupledRobot.expand_rates
coupled.expand_rates(qd)
# %% CoupledRobot.forward_dynamics
tau = coupled.inverse_dynamics(q, qd, [1.0, 2.0])
coupled.forward_dynamics(q, qd, tau)
# %% CoupledRobot.frame_names
coupled.frame_names
# %% CoupledRobot.gravity
coupled.gravity
# %% CoupledRobot.gravity_forces
coupled.gravity_forces(q)
# %% CoupledRobot.integrate
coupled.integrate(q, qd, 0.1)
# %% CoupledRobot.inverse_dynamics
coupled.inverse_dynamics(q, qd, [1.0, 2.0])
# %% CoupledRobot.jacobian
coupled.jacobian(q, "tool").shape
# %% CoupledRobot.link_names
coupled.link_names
# %% CoupledRobot.mass_matrix
coupled.mass_matrix(q)
# %% CoupledRobot.methods
coupled.methods("inverse_dynamics")[0]
# %% CoupledRobot.name
coupled.name
# %% CoupledRobot.neutral
coupled.neutral()
# %% CoupledRobot.normalize
coupled.normalize(q)
# %% CoupledRobot.pose
coupled.pose(q, "tool")[:3, 3]
# %% CoupledRobot.random
coupled.random(np.random.default_rng(0)).shape
# %% CoupledRobot.reduce_forces
coupled.reduce_forces([1.0, 1.0, 1.0])
# %% CoupledRobot.with_base
turned = ls.CoupledRobot(ls.robots.puma560(), [Mimic("joint6", "joint5", 1.0, 0.0)])
turned.with_base("floating").neutral().shape
# %% CoupledRobot.with_gravity
coupled.with_gravity((0, 0, 0)).gravity_forces(q)
# %% CoupledRobot.with_payload
coupled.with_payload("tool", 1.0).gravity_forces(q)
