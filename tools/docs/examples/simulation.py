# %% setup
import numpy as np

import linksweep as ls
from linksweep import simulation

arm = ls.robots.planar(2)
path = ls.motion.Quintic([[0.0, 0.0], [1.0, 0.5]], [0.0, 0.5])
home = np.array([0.3, 0.4])


def moved(controller, **options):
    return ls.simulate(arm, home, torque=controller, duration=0.2, **options)


# %% simulation.ComputedTorque
moved(simulation.ComputedTorque(home + 0.1, kp=400.0, kd=40.0)).q[-1]
# %% simulation.Constant
moved(simulation.Constant(arm.gravity_forces(home))).q[-1]
# %% simulation.Event
event = simulation.Adaptive(events=[lambda t, q, qd: q[0] - 0.2])
run = moved(None, integrator=event)
type(run.events[0]).__name__
# %% simulation.FeedForward
controller = simulation.FeedForward(path)
run = ls.simulate(arm, [0.0, 0.0], torque=controller, duration=0.5)
run.q[-1]
# %% simulation.FrictionCompensation
controller = (
    simulation.GravityCompensation()
    + simulation.FrictionCompensation(damping=0.5)
)
controller.torque(0.0, home, [1.0, 0.0], arm) - arm.gravity_forces(home)
# %% simulation.GravityCompensation
np.abs(moved(simulation.GravityCompensation()).q[-1] - home).max() < 1e-9
# %% simulation.LimitCrossing
run = ls.simulate(arm.with_limits(lower=-1.0, upper=1.0), home, duration=1.0)
run.limit_crossings[0]
# %% simulation.LimitExcess
run = ls.simulate(arm.with_limits(lower=-1.0, upper=1.0), home, duration=1.0)
run.limits()
# %% simulation.Motor, simulation.Sampling
motor = simulation.Motor(gear=100.0, torque_constant=0.05, current=20.0)
controller = simulation.PD(home, 200.0, 30.0)
sampling = simulation.Sampling(encoder=1e-4, motor=motor)
run = moved(simulation.SampledController(controller, 2e-3, sampling))
np.abs(run.q[-1] - home).max() < 0.01
# %% simulation.OperationalSpace
controller = simulation.OperationalSpace(
    "tool", arm.pose(home, "tool"), 100.0, 20.0
)
controller.torque(0.0, home, [0.0, 0.0], arm) - arm.gravity_forces(home)
# %% simulation.PD
moved(simulation.PD(home, kp=100.0, kd=20.0)).q[-1]
# %% simulation.Push
controller = simulation.PD(home, 400.0, 40.0) + simulation.Push(
    "tool", [0, 0, 0, 0, 5.0, 0], start=0.05
)
(moved(controller).q[-1] - home)[0] > 0
# %% simulation.Sampled
moved(simulation.Sampled(np.tile(arm.gravity_forces(home), (201, 1)))).q[-1]
# %% simulation.Simulation
run = moved(None)
print(run.t.shape, run.q.shape, run.energy_drift < 1e-9)
# %% simulation.SimulationWarning
issubclass(simulation.SimulationWarning, UserWarning)
# %% simulation.State, simulation.Stepper
step = simulation.stepper(arm, 1e-3)
state = step.start(home)
step(state, [0.0, 0.0])
state.t
# %% simulation.Table, simulation.compare
runs = {
    "soft": moved(simulation.PD(home + 0.1, 20, 5)),
    "stiff": moved(simulation.PD(home + 0.1, 400, 40)),
}
table = simulation.compare(runs, reference=home + 0.1)
table.headings[:3]
# %% simulation.TrackingError
moved(simulation.PD(home + 0.1, 400, 40)).tracking_error(home + 0.1).largest
# %% simulation.Zero
moved(simulation.Zero()).q[-1]
# %% simulation.load
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    moved(None).to_npz(Path(folder) / "fall.npz")
    again = simulation.load(Path(folder) / "fall.npz")
again.q.shape
# %% simulation.saturated
controller = simulation.saturated(
    simulation.PD(home + 1.0, 1000.0, 10.0), 15.0
)
controller.torque(0.0, home, [0.0, 0.0], arm)
# %% simulation.Admittance
turret = ls.robots.puma560()
q = np.array([0.1, -0.5, 0.4, 0.2, 0.6, 0.0])
push = simulation.Push("tool", [0, 0, 0, 5.0, 0, 0])
controller = simulation.Admittance(
    "tool", turret.pose(q, "tool"), 2.0, 100.0, 20.0, push
)
run = ls.simulate(
    turret, q, torque=controller, duration=0.2, disturbance=push
)
(turret.pose(run.q[-1], "tool") - turret.pose(q, "tool"))[:3, 3]
