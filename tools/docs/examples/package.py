# %% setup
import numpy as np

import linksweep as ls

robot = ls.robots.puma560()
arm = ls.robots.planar(2)
# %% __version__
ls.__version__
# %% body
ls.body(mass=2.0, com=(0, 0, 0.1), inertia=(0.01, 0.01, 0.02))
# %% check
report = ls.check(arm, samples=5)
report.ok
# %% excite
motion = ls.excite(
    arm.with_limits(lower=-1, upper=1, velocity=2),
    duration=2.0,
    harmonics=2,
    starts=1,
    iterations=2,
)
motion.condition > 1
# %% follow
q = np.array([0.3, 0.8])
line = ls.motion.Line(arm.pose(q, "tool"), arm.pose(q + 0.1, "tool"), 1.0)
way = ls.follow(
    arm, "tool", line, np.linspace(0, 1, 4), q0=q, position_only=True
)
way.solved
# %% identify
t = np.linspace(0, 4, 400)
q = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1)
qd = np.stack([2 * np.cos(2 * t), -3 * np.sin(3 * t)], axis=1)
qdd = np.stack([-4 * np.sin(2 * t), -9 * np.cos(3 * t)], axis=1)
fit = ls.identify(
    arm,
    t,
    q,
    arm.inverse_dynamics(q, qd, qdd),
    unknown=("inertia",),
    cutoff=float("inf"),
)
dict(zip(fit.names, fit.values.round(3).tolist()))
# %% inverse_kinematics
found = ls.inverse_kinematics(
    arm, [1.0, 1.0, 0.0], "tool", position_only=True
)
arm.pose(found.q, "tool")[:3, 3]
# %% load
ls.load(
    "puma560"
).name  # or a path: robot.urdf, robot.xml (MJCF), robot.toml (a DH table)
# %% operators
o = ls.operators(robot, np.full(6, 0.3))
M = (o.H @ o.phi @ o.M @ o.phi.T @ o.H.T).todense()
np.allclose(
    M[::-1, ::-1] + np.diag(robot.armature),
    robot.mass_matrix(np.full(6, 0.3)),
)
# %% prove
ls.prove("RP").ok
# %% read_log
times = np.linspace(0.0, 1.0, 11)
np.savez(
    "log.npz",
    time=times,
    position=np.zeros((11, 2)),
    joint_names=["joint2", "joint1"],
)
ls.read_log("log.npz", arm)
# %% scene
both = ls.scene({"arm": arm, "box": ls.body(2.0, inertia=(0.1, 0.1, 0.1))})
both.joint_names
# %% simulate
run = ls.simulate(arm, [0.5, 0.0], duration=1.0)
print(run.q.shape, run.energy_drift < 1e-9)
# %% stepper
step = ls.stepper(arm, 1e-3)
state = step.start([0.5, 0.0])
for _ in range(100):
    step(state, arm.gravity_forces(state.q))
state.q
# %% use_backend
ls.use_backend("interpreter")
held = arm.gravity_forces([0.0, 0.0])
ls.use_backend("llvm")
held
# %% Contact, Grasp
contact = ls.Contact(arm, "tool", np.eye(4), "point", friction=0.5)
grasp = ls.Grasp(ls.body(1.0, inertia=(0.01, 0.01, 0.01)), [contact])
grasp.robot.nv
# %% JointLog
ls.JointLog(t=np.linspace(0.0, 1.0, 11), q=np.zeros((11, 2)))
# %% ArgumentError
try:
    arm.mass_matrix([0.0, 0.0, 0.0])
except ls.ArgumentError as error:
    print(error)
# %% BackendError
try:
    raise ls.BackendError(
        "executable memory is forbidden: set LINKSWEEP_BACKEND=interpreter."
    )
except ls.LinksweepError as error:
    print(error)
# %% DescriptionError
try:
    ls.Robot.from_dh([{"a": 1.0, "mass": -1.0}], convention="modified")
except ls.DescriptionError as error:
    print(error)
# %% LinksweepError
try:
    ls.load("no_such_robot")
except ls.LinksweepError as error:
    print(type(error).__name__)
# %% LogWarning, ModelWarning, SingularWarning
import warnings

with warnings.catch_warnings():
    # turn the warning into an error
    warnings.simplefilter("error", ls.ModelWarning)
    ls.robots.puma560()
# %% SingularError
issubclass(ls.SingularError, ls.LinksweepError)
# %% conventions
ls.conventions.__all__
# %% identification
ls.identification.__all__
# %% motion
ls.motion.Quintic([[0.0], [1.0]], [0.0, 2.0])(1.0).q
# %% plots
figure = ls.plots.lines(
    [0, 1, 2], {"squares": [0, 1, 4]}, x_label="n", y_label="n²"
)
type(figure).__name__
# %% robots
ls.robots.names()
# %% simulation
ls.simulation.PD([0.0, 0.0], 100.0, 20.0)
# %% studies
list(ls.studies.STUDIES)
# %% viewer
ls.viewer.__all__[:3]
