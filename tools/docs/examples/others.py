# %% setup
import numpy as np

import linksweep as ls
from linksweep import plots, robots

arm = ls.robots.planar(2)
t = np.linspace(0.0, 1.0, 50)
q, qd, qdd = ls.motion.Quintic([[0.0, 0.0], [1.0, -0.5]], [0.0, 1.0])(t)
tau = arm.inverse_dynamics(q, qd, qdd)
# %% plots.Animation
import tempfile
from pathlib import Path

motion = plots.animate(arm, t[::25], q[::25], fps=2)
with tempfile.TemporaryDirectory() as folder:
    motion.save(Path(folder) / "arm.gif")
motion.duration
# %% plots.Channel
plots.Channel("pressure", "bar", low=0.0, high=6.0)
# %% plots.animate
plots.animate(arm, t[::10], q[::10], fps=10)
# %% plots.heat
plots.heat(
    [[1.0, 0.4], [0.4, 1.0]],
    x=["joint1", "joint2"],
    y=["joint1", "joint2"],
    label="correlation",
)
# %% plots.bars
plots.bars(
    {"newton_euler": 21.6, "kane": 25.7},
    x_label="time per sample (ns)",
    title="UR5",
)
# %% plots.channels
plots.channels(arm, "tau")
# %% plots.errors
plots.errors(
    t,
    {
        "round trip": np.abs(arm.forward_dynamics(q, qd, tau) - qdd).max(
            axis=1
        )
        + 1e-18
    },
    bar=1e-9,
)
# %% plots.fitted_torques
plots.fitted_torques(arm, t, tau + 0.1, tau)
# %% plots.intervals
plots.intervals(["m1", "m2"], [1.0, 2.0], [0.1, 0.2], x_label="kg")
# %% plots.lines
plots.lines(
    t,
    {"joint1": q[:, 0], "joint2": q[:, 1]},
    x_label="time (s)",
    y_label="angle (rad)",
)
# %% plots.overlaid
plots.overlaid(plots.channels(arm, "q"), t, q, "positions")
# %% plots.panels
plots.panels(
    [plots.Channel("pressure", "bar")], t, np.sin(t)[:, None], "a sensor"
)
# %% plots.phase
plots.phase(arm, q, qd)
# %% plots.save
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    plots.save(plots.phase(arm, q, qd), Path(folder) / "phase.svg")
# %% plots.sketch
plots.sketch(arm, [0.3, 0.8])
# %% plots.spectra
frequencies = np.linspace(0.1, 10, 40)
plots.spectra(
    arm,
    frequencies,
    {"residual": np.ones((40, 2)) / frequencies[:, None]},
    cutoff=5.0,
)
# %% plots.time_series
plots.time_series(arm, t, tau)
# %% plots.torque_figure
plots.torque_figure("torques", ["shoulder", "elbow"], ["N m", "N m"], t, tau)
# %% robots.andrews
robots.andrews().nv
# %% robots.chain
robots.chain(5, seed=1).nv
# %% robots.chain_model
robots.chain_model(3).name
# %% robots.four_bars
robots.four_bars(2).nv
# %% robots.gen3
robots.gen3().limits.effort
# %% robots.general
robots.general("RPR").operation_count("inverse_dynamics")
# %% robots.iiwa14
robots.iiwa14().pose([0, 0, 0, 0, 0, 0, 0], "tool")[:3, 3]
# %% robots.model
robots.model("stanford").name
# %% robots.names
robots.names()
# %% robots.panda
robots.panda().gravity_forces([0, -0.785, 0, -2.356, 0, 1.571, 0.785])
# %% robots.planar
robots.planar(3, length=0.5, mass=2.0).nv
# %% robots.planar_model
[link.name for link in robots.planar_model(2).links]
# %% robots.puma560
robots.puma560().nv
# %% robots.puma560_model
robots.puma560_model().name
# %% robots.six_axis
import warnings

with warnings.catch_warnings():
    # one published inertia is not physically consistent
    warnings.simplefilter("ignore", ls.ModelWarning)
    published = robots.six_axis()
published.nv
# %% robots.six_axis_model
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ls.ModelWarning)
    described = robots.six_axis_model()
described.name
# %% robots.stanford
robots.stanford().joint_names[2]
# %% robots.stanford_model
robots.stanford_model().links[2].joint.kind
# %% robots.ur5e
robots.ur5e().joint_names
# %% robots.ur10e
robots.ur10e().with_payload("tool", 12.5).gravity_forces(
    [0, -0.5, 1.0, 0, 0, 0]
)
# %% studies.STUDIES
list(ls.studies.STUDIES)
# %% studies.run
import tempfile

with tempfile.TemporaryDirectory() as folder:
    written = ls.studies.run("stanford", folder, samples=11)
written.ok
# %% identification.Excitation
easy = arm.with_limits(lower=-1, upper=1, velocity=2)
motion = ls.excite(easy, duration=2.0, harmonics=2, starts=1, iterations=1)
motion.samples(rate=50.0)[1].shape
# %% identification.Fit
fit = ls.identify(
    arm, t, q, tau, unknown=("inertia:link2",), cutoff=float("inf")
)
fit.names
# %% identification.Validation
fit = ls.identify(
    arm, t, q, tau, unknown=("inertia:link2",), cutoff=float("inf")
)
other = fit.validate(
    t, 0.5 * q, arm.inverse_dynamics(0.5 * q, 0.5 * qd, 0.5 * qdd)
)
dict(zip(other.joints, other.rms < 1e-6 * other.torque))
# %% conventions.from_mujoco, conventions.to_mujoco
import mujoco

ball = """<mujoco><worldbody>
  <body name="ball"><freejoint/><geom size="0.1"/></body>
</worldbody></mujoco>"""
model = mujoco.MjModel.from_xml_string(ball)
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "ball.xml").write_text(ball)
    free = ls.load(Path(folder) / "ball.xml")
there = ls.conventions.to_mujoco(free, model, q=free.neutral())
np.allclose(ls.conventions.from_mujoco(free, model, q=there), free.neutral())
# %% conventions.from_pinocchio, conventions.to_pinocchio
import pinocchio as pin

model = pin.buildModelFromXML(arm.with_gravity([0, 0, -9.81]).to_urdf())
there = ls.conventions.to_pinocchio(arm, model, q=[0.3, 0.5])
ls.conventions.from_pinocchio(arm, model, q=there)
