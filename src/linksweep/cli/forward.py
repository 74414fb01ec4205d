"""`linksweep forward`: the accelerations that torques cause."""

from linksweep.cli import dynamics

forward = dynamics.command(
    "forward_dynamics", "Accelerations along a trajectory of t, q, qd, tau: a table, a file (-o), a plot."
)
