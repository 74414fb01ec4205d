"""`linksweep inverse`: the torques of a motion."""

from linksweep.cli import dynamics

inverse = dynamics.command(
    "inverse_dynamics", "Torques along a trajectory of t, q, qd, qdd: a table, a file (-o), a plot."
)
