# %% setup
import numpy as np

import linksweep as ls

robot = ls.robots.puma560()
arm = ls.robots.planar(2)  # two rods of 1 m and 1 kg
q = np.array([0.1, -0.5, 0.4, 0.2, 0.6, 0.0])
qd = np.array([0.3, 0.1, -0.2, 0.5, 0.0, 0.4])
qdd = np.zeros(6)

srdf = """<robot name="planar2">
  <group name="arm"><chain base_link="base" tip_link="tool"/></group>
  <group_state name="bent" group="arm">
    <joint name="joint2" value="1.5"/>
  </group_state>
  <end_effector name="gripper" parent_link="tool" group="arm"/>
</robot>"""
urdf = arm.with_gravity((0, 0, -9.81)).to_urdf()
described = ls.load(urdf, srdf=srdf)
# %% Robot
print(robot)
print(robot.nv, robot.joint_names)
# %% Robot.armature
robot.armature
# %% Robot.articulated_inertia
# (84) of Rodriguez 1987
P = robot.articulated_inertia(q, method="articulated_parameters")
J, Y, rho = P[:, :3, :3], P[:, :3, 3:], P[:, 3:, 3:]
# the last link carries no other link
assert np.allclose(rho[-1], robot.masses[-1] * np.eye(3))
# effective mass of link 2 along x, y, z (kg)
np.round(np.diagonal(rho[1]), 2)
# %% Robot.base_parameters
base = robot.base_parameters()
print(len(base.names), base.names[:4])
# %% Robot.bias_forces
assert np.allclose(
    robot.bias_forces(q, qd), robot.inverse_dynamics(q, qd, 0 * qd)
)
robot.bias_forces(q, qd)
# %% Robot.can_be_singular
robot.can_be_singular
# %% Robot.canonical
[link.name for link in robot.canonical.links][:3]
# %% Robot.center_of_mass
robot.center_of_mass(q)
# %% Robot.centroidal_momentum_matrix
A = robot.centroidal_momentum_matrix(q)
assert np.allclose(A @ qd, robot.momentum(q, qd))
A.shape
# %% Robot.compile
f = robot.compile(["mass_matrix", "gravity_forces"])
M, g = f(np.zeros((1000, 6)))
print(f.inputs, M.shape, g.shape)
# %% Robot.coordinate_rates
floating = robot.with_base("floating")
floating.coordinate_rates(floating.neutral(), [0, 0, 2, 1, 0, 0, *[0] * 6])
# %% Robot.coriolis_matrix
C = robot.coriolis_matrix(q, qd)
assert np.allclose(C @ qd + robot.gravity_forces(q), robot.bias_forces(q, qd))
C.shape
# %% Robot.damping
arm.with_dissipation(damping=0.5).damping
# %% Robot.difference
there = robot.integrate(q, qd, 0.5)
robot.difference(q, there)
# %% Robot.ee
robot.ee
# %% Robot.end_effectors
described.end_effectors["gripper"].link
# %% Robot.explain
found = arm.explain(
    "inverse_dynamics", method="kane", q=[0.3, 0.5], qd=[1.0, 2.0]
)
print(str(found.of("link2"))[-300:])
# %% Robot.explicit_model
inertia, P, g = robot.explicit_model(q)
tau = inertia @ qdd + np.einsum("j,ijk,k->i", qd, P, qd) + g
assert np.allclose(tau, robot.inverse_dynamics(q, qd, qdd))
inertia.shape, P.shape, g.shape
# %% Robot.factor
factor = robot.factor(q)
assert np.allclose(
    factor.solve(np.ones(6)),
    np.linalg.solve(robot.mass_matrix(q), np.ones(6)),
)
factor.logdet()
# %% Robot.follow
start = robot.pose(q, "tool")
end = start.copy()
end[2, 3] += 0.1
way = robot.follow(
    ls.motion.Line(start, end, 1.0), "tool", np.linspace(0, 1, 5), q0=q
)
way.q[-1]
# %% Robot.forward_dynamics
tau = robot.inverse_dynamics(q, qd, np.ones(6))
robot.forward_dynamics(q, qd, tau)
# %% Robot.forward_dynamics_derivatives
by_q, by_qd, by_tau = robot.forward_dynamics_derivatives(q, qd, np.zeros(6))
assert np.allclose(by_tau, robot.mass_matrix_inverse(q))
by_q.shape
# %% Robot.frame_acceleration
a = robot.frame_acceleration(q, qd, qdd, "tool")
assert np.allclose(a, robot.jacobian_bias(q, qd, "tool"))
a
# %% Robot.frame_names
arm.frame_names
# %% Robot.frame_velocity
robot.frame_velocity(q, qd, "tool")
# %% Robot.frames
arm.frames[-1].name
# %% Robot.friction
arm.with_dissipation(friction=[0.3, 0.1]).friction
# %% Robot.from_dh
rows = [{"a": a, "mass": 1.0, "com": (0.5, 0, 0)} for a in (0.0, 1.0)]
two = ls.Robot.from_dh(rows, convention="modified")
two.nv
# %% Robot.functions
robot.functions[:6]
# %% Robot.gravity
robot.gravity
# %% Robot.gravity_forces
robot.gravity_forces(q)
# %% Robot.groups
described.groups
# %% Robot.has_inertia
robot.has_inertia
# %% Robot.influence
G, H = robot.influence(q, "tool")
assert np.allclose(G, robot.jacobian(q, "tool"))
G.shape, H.shape
# %% Robot.integrate
robot.integrate(q, qd, dt=0.01)
# %% Robot.inverse_dynamics
robot.inverse_dynamics(q, qd, qdd)
# %% Robot.inverse_dynamics_derivatives
by_q, by_qd, by_qdd = robot.inverse_dynamics_derivatives(q, qd, qdd)
assert np.allclose(by_qdd, robot.mass_matrix(q))
by_q.shape
# %% Robot.inverse_kinematics
found = robot.inverse_kinematics(robot.pose(q, "tool"), "tool", q0=q + 0.1)
assert found.solved and np.allclose(
    robot.pose(found.q, "tool"), robot.pose(q, "tool")
)
found.q
# %% Robot.inverse_kinematics_branches
found = robot.inverse_kinematics_branches(
    robot.pose(q, "tool"), "tool", limits=False
)
assert np.allclose(
    robot.pose(found.q[: found.count], "tool"), robot.pose(q, "tool")
)
found.q[: found.count].round(3)
# %% Robot.jacobian
J = arm.jacobian([0.0, np.pi / 2], "tool")
assert np.allclose(J[:2], 0)  # angular about x and y: it is a planar arm
J[3:5]
# %% Robot.jacobian_bias
robot.jacobian_bias(q, qd, "tool")
# %% Robot.jacobian_derivative
dJ = robot.jacobian_derivative(q, qd, "tool")
assert np.allclose(dJ @ qd, robot.jacobian_bias(q, qd, "tool"))
dJ.shape
# %% Robot.jacobians
arm.jacobians([0.1, 0.2]).shape
# %% Robot.joint_data
# <transmission>, <safety_controller> and <calibration> of URDF files
robot.joint_data
# %% Robot.joint_names
robot.joint_names
# %% Robot.kinetic_energy
assert np.isclose(
    robot.kinetic_energy(q, qd), qd @ robot.mass_matrix(q) @ qd / 2
)
robot.kinetic_energy(q, qd)
# %% Robot.limits
arm.with_limits(lower=-2.0, upper=2.0).limits.upper
# %% Robot.link_names
robot.link_names
# %% Robot.lock
wrist_locked = robot.lock({"joint4": 0.0, "joint5": 0.3, "joint6": 0.0})
wrist_locked.joint_names
# %% Robot.manipulability
robot.manipulability(q, "tool")
# %% Robot.mass_matrix
arm.mass_matrix([0.0, np.pi / 2])
# %% Robot.mass_matrix_inverse
assert np.allclose(
    arm.mass_matrix_inverse([0.0, 1.0]) @ arm.mass_matrix([0.0, 1.0]),
    np.eye(2),
)
arm.mass_matrix_inverse([0.0, 1.0])
# %% Robot.masses
robot.masses
# %% Robot.methods
robot.methods("forward_dynamics")
# %% Robot.momentum
robot.momentum(q, qd)
# %% Robot.momentum_observer
observer = arm.momentum_observer(dt=1e-3)
holding = arm.gravity_forces([0.3, 0.4])
for _ in range(200):
    external = observer(
        [0.3, 0.4], [0.0, 0.0], holding + np.array([0.0, 1.0])
    )
external
# %% Robot.name
robot.name
# %% Robot.neutral
robot.with_base("floating").neutral()
# %% Robot.normalize
robot.with_base("floating").normalize([0, 0, 0, 2, 0, 0, 0, *[0] * 6])
# %% Robot.nq, Robot.nv
floating = robot.with_base("floating")
floating.nq, floating.nv
# %% Robot.operation_count
robot.operation_count("inverse_dynamics")
# %% Robot.operational_inertia
Lambda = robot.operational_inertia(q, "tool")
assert np.allclose(
    Lambda @ robot.operational_inertia_inverse(q, "tool"), np.eye(6)
)
Lambda.shape
# %% Robot.operational_inertia_inverse
J = robot.jacobian(q, "tool")
Omega = robot.operational_inertia_inverse(q, "tool")
assert np.allclose(Omega, J @ robot.mass_matrix_inverse(q) @ J.T)
Omega.shape
# %% Robot.operational_space
space = robot.operational_space(q, qd, "tool")
type(space).__name__
# %% Robot.pack
robot.pack({"joint2": 0.3}, default=robot.neutral())
# %% Robot.placed
stand = np.eye(4)
stand[2, 3] = 0.8
arm.placed(stand).pose([0.0, 0.0], "tool")[:3, 3]
# %% Robot.forward_kinematics
arm.forward_kinematics([0.0, np.pi / 2], "tool")
# %% Robot.pose
arm.pose([0.0, np.pi / 2], "tool")
# %% Robot.poses
arm.poses([0.0, 0.3]).shape
# %% Robot.potential_energy
arm.potential_energy([np.pi / 2, 0.0])
# %% Robot.random
robot.random(np.random.default_rng(0))
# %% Robot.recipe
recipe = robot.recipe("inverse_dynamics")
type(recipe.trace()).__name__
# %% Robot.regressor
Y = robot.regressor(q, qd, qdd)
assert np.allclose(
    Y @ robot.standard_parameters, robot.inverse_dynamics(q, qd, qdd)
)
Y.shape
# %% Robot.singular
robot.singular(q)
# %% Robot.singular_joints
robot.singular_joints
# %% Robot.snapped, Robot.snapping
exact = robot.snapped(1e-5)
exact.snapping
# %% Robot.standard_parameter_names
robot.standard_parameter_names[:4]
# %% Robot.standard_parameters
robot.standard_parameters.shape
# %% Robot.states
described.states["bent"]
# %% Robot.subchain
robot.subchain("base", "link3").joint_names
# %% Robot.symbolic
arm.symbolic("mass_matrix", simplify=True)
# %% Robot.tip, Robot.tips
arm.tips, arm.tip
# %% Robot.to_dh
table = robot.to_dh("modified")
same = ls.Robot.from_dh(**table)
np.abs(same.pose(q, same.ee) - robot.pose(q, robot.ee)).max() < 1e-12
# %% Robot.to_mjcf
print(arm.to_mjcf()[:120])
# %% Robot.to_urdf
print(robot.to_urdf()[:120])
# %% Robot.torque_offset
arm.with_dissipation(
    torque_offset=[0.3, -0.1]
).torque_offset  # N m, counted with dissipation=True
# %% Robot.unpack
arm.unpack([0.1, 0.2])
# %% Robot.warn_if_singular
robot.warn_if_singular("this pose", q)
# %% Robot.with_armature
arm.with_armature({"joint1": 0.2}).armature
# %% Robot.with_base
robot.with_base("floating").joint_names
# %% Robot.with_dissipation
rough = arm.with_dissipation(damping=0.5, friction=0.1)
rough.inverse_dynamics(
    [0, 0], [1.0, 1.0], [0, 0], dissipation=True
) - rough.inverse_dynamics([0, 0], [1.0, 1.0], [0, 0])
# %% Robot.with_frame
middle = np.eye(4)
middle[0, 3] = 0.5
arm.with_frame("middle", "link2", middle).pose([0.0, 0.0], "middle")[:3, 3]
# %% Robot.with_gravity
arm.with_gravity((0, 0, 0)).gravity_forces([0.0, 0.0])
# %% Robot.with_inertia
heavier = arm.with_inertia(
    {"link2": ls.body(mass=3.0, com=(0.5, 0, 0), inertia=(0, 0.25, 0.25))}
)
heavier.masses
# %% Robot.with_limits
arm.with_limits(lower=-1.0, upper=1.0, effort=20.0).limits.effort
# %% Robot.with_payload
arm.with_payload("tool", 2.0).gravity_forces([0.0, 0.0])
# %% Robot.wrench_from_torques
push = np.array([0, 0, 0, 5.0, 0, 0])  # 5 N along x at the tool
measured = robot.gravity_forces(q) - robot.jacobian(q, "tool").T @ push
robot.wrench_from_torques(q, 0 * q, measured, "tool").wrench
