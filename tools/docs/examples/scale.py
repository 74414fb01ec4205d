# %% setup
import numpy as np

import linksweep as ls
from linksweep import simulation

full = ls.robots.planar(3)
# q3 = q2 / 2 + 0.1
coupled = full.with_couplings(
    [ls.Coupling("joint3", "joint2", multiplier=0.5, offset=0.1)]
)
q, qd = np.array([0.2, 0.4]), np.array([1.0, 0.5])


def drawn(rng, first, count):
    return {"q": rng.normal(size=(count, 3))}


# %% Coupling
ls.Coupling("joint3", "joint2", multiplier=0.5, offset=0.1)
# %% Robot.with_couplings
gear = full.with_couplings([ls.Coupling("joint2", "joint1", multiplier=-2.0)])
gear.joint_names
# %% Robot.couplings
coupled.couplings
# %% Robot.uncoupled
coupled.uncoupled.joint_names
# %% Robot.expand
coupled.expand(q)
# %% Robot.expand_rates
coupled.expand_rates(qd)
# %% Robot.reduce_forces
tau = coupled.uncoupled.gravity_forces(coupled.expand(q))
assert np.allclose(coupled.reduce_forces(tau), coupled.gravity_forces(q))
coupled.reduce_forces(tau)
# %% Robot.without_constraints
bars = ls.robots.four_bars(1)
bars.without_constraints().constraints
# %% Robot.regressor_places
rows, columns = full.regressor_places
Y = np.zeros((3, 33))
Y[rows, columns] = full.regressor(
    [0.1, 0.2, 0.3], [0, 0, 1], [1, 0, 0], packed=True
)
Y @ full.standard_parameters
# %% CompiledFunction.casadi
import casadi

torques = full.compile("gravity_forces").casadi("gravity")
torques(casadi.DM([0.1, 0.2, 0.3]))
# %% ensemble
found = ls.ensemble(drawn, 300, "drawn", chunk=100, seed=1)
sorted(found.table())
# %% simulation.Ensemble
found = ls.ensemble(drawn, 300, "other", chunk=100)
found.computed
# %% simulation.Rollouts
rollouts = simulation.Rollouts(
    full,
    q0=np.zeros(3),
    options={"duration": 0.1},
    vary={"q0": ("normal", 0.05)},
)
sorted(ls.ensemble(rollouts, 20, "rollouts", chunk=10).table())[:3]
# %% stream
np.save("q.npy", np.zeros((1000, 3)))
ls.stream(full.compile("gravity_forces"), {"q": "q.npy"}, "tau.npy")
# %% rollout
roll = ls.rollout(full, 0.01)
states, rates = roll(np.zeros(3), np.zeros(3), np.ones((10, 3)))
states.shape
# %% simulation.Rollout
roll = ls.rollout(full, 0.01)
w_q = np.zeros((11, 3))
w_q[-1] = 1.0  # the loss is the sum of the last coordinates
by_q0, by_qd0, by_tau = roll.vjp(
    np.zeros(3), np.zeros(3), np.ones((10, 3)), w_q
)
by_q0
# %% simulation.Surface
table = simulation.Surface(
    "tool", point=(0, -1.0, 0), normal=(0, 1, 0), damping=50.0
)
run = ls.simulate(full, np.zeros(3), duration=0.2, disturbance=table)
run.q[-1]


# %% simulation.Controller, simulation.Signal
class Wave(simulation.Controller):
    """tau = amplitude sin(phase) - damping qd."""

    def __init__(self, amplitude, damping):
        self.amplitude, self.damping = amplitude, damping

    def inputs(self, robot):
        return {
            "sine": simulation.Signal(
                1, lambda t, grid: np.sin(5.0 * t)[:, None]
            ),
            "amplitude": np.full(robot.nv, self.amplitude),
            "damping": np.full(robot.nv, self.damping),
        }

    def formula(self, dynamics, q, qd, x):
        return [
            a * x["sine"][0] - d * v
            for a, d, v in zip(x["amplitude"], x["damping"], qd)
        ]


wave = Wave(0.2, 0.1) + simulation.GravityCompensation()
run = ls.simulate(full, np.zeros(3), None, wave, 0.1)
assert np.allclose(run.tau[-1], wave.torque(0.1, run.q[-1], run.qd[-1], full))
wave.to_c("wave.c", full)[1].name
# %% simulation.Disturbance
from linksweep.spatial.scalars import where


class Ceiling(simulation.Disturbance):
    """A contact model: a spring that acts on a frame above y = height."""

    def __init__(self, frame, height, stiffness):
        self.frame, self.height, self.stiffness = frame, height, stiffness

    def inputs(self, robot):
        return {
            "height": np.array([self.height]),
            "stiffness": np.array([self.stiffness]),
        }

    def formula(self, dynamics, q, qd, x):
        depth = dynamics.pose(self.frame, q)[1][3] - x["height"][0]
        force = where(depth > 0.0, -x["stiffness"][0] * depth, 0.0)
        return [row * force for row in dynamics.jacobian(self.frame, q)[4]]


run = ls.simulate(
    full,
    np.zeros(3),
    np.ones(3),
    duration=0.2,
    disturbance=Ceiling("tool", 0.1, 1e3),
)
run.q[-1]
# %% simulation.Integrator, simulation.RK4, simulation.SemiImplicitEuler
run = ls.simulate(
    full,
    np.zeros((64, 3)),
    duration=0.1,
    integrator=simulation.RK4(threads=2, dtype="float32"),
)
(
    run.q.dtype,
    ls.simulate(
        full,
        np.zeros(3),
        duration=0.1,
        integrator=simulation.SemiImplicitEuler(),
    ).q[-1],
)


# %% simulation.Adaptive
def swing(t, q, qd):
    return q[0] + 0.1  # crosses 0 where the first joint passes -0.1 rad


run = ls.simulate(
    full,
    np.zeros(3),
    duration=0.5,
    integrator=simulation.Adaptive(rtol=1e-10, events=[swing]),
)
run.events[0].t
# %% simulation.JointStops
limited = ls.robots.puma560()
# hard; JointStops(stiffness, damping) are springs
stops = simulation.JointStops()
ls.simulate(
    limited, limited.neutral(), duration=0.1, disturbance=stops
).limit_crossings
# %% simulation.Policy, simulation.SampledController
policy = simulation.Policy(lambda t, q, qd: -0.5 * qd)  # of a whole batch
digital = simulation.SampledController(
    policy, 0.01, simulation.Sampling(delay=0.005)
)
ls.simulate(full, np.zeros((8, 3)), torque=digital, duration=0.1).tau.shape
