"""Time-optimal motion of a PUMA within its torque limits, by CasADi and IPOPT with exact second derivatives."""

import shutil

import numpy as np

import linksweep as ls

try:
    import casadi as ca  # pyright: ignore[reportMissingImports]
except ImportError:
    raise SystemExit(print("This example needs casadi: pip install linksweep[casadi]")) from None
if not (shutil.which("cc") or shutil.which("gcc")):
    raise SystemExit(print("This example needs a C compiler: cc or gcc."))

robot = ls.robots.puma560()
inverse = robot.compile("inverse_dynamics").casadi("puma_inverse")
start, goal = np.zeros(6), np.array([1.5, -0.8, 0.6, 0.5, -0.6, 0.8])
limit, steps = robot.limits.effort, 20

duration = ca.MX.sym("duration")
q, qd = ca.MX.sym("q", 6, steps + 1), ca.MX.sym("qd", 6, steps + 1)
qdd = ca.MX.sym("qdd", 6, steps)  # constant during each step, so that the motion between is known exactly
h = duration / steps
along = q[:, :-1] + h * qd[:, :-1] + h**2 / 2 * qdd - q[:, 1:]
rates = qd[:, :-1] + h * qdd - qd[:, 1:]
# torques at both ends of each step, in parts of what the motors have
before = inverse.map(steps)(q[:, :-1], qd[:, :-1], qdd) / ca.repmat(limit, 1, steps)
after = inverse.map(steps)(q[:, 1:], qd[:, 1:], qdd) / ca.repmat(limit, 1, steps)
ends = ca.vertcat(q[:, 0] - start, q[:, -1] - goal, qd[:, 0], qd[:, -1])
smooth = 1e-6 * ca.sumsqr(qdd) / steps  # of many fastest motions, one without needless swings of the wrist

equal, bounded = ca.vertcat(ca.vec(along), ca.vec(rates), ends), ca.vertcat(ca.vec(before), ca.vec(after))
x = ca.vertcat(duration, ca.vec(q), ca.vec(qd), ca.vec(qdd))
problem = {"x": x, "f": duration + smooth, "g": ca.vertcat(equal, bounded)}
quiet = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes", "ipopt.tol": 1e-8}
solver = ca.nlpsol("solver", "ipopt", problem, quiet)
zeros, ones = np.zeros(equal.numel()), np.ones(bounded.numel())
guess = np.linspace(start, goal, steps + 1)
found = solver(
    x0=np.concatenate([[2.0], guess.ravel(), np.tile((goal - start) / 2.0, steps + 1), np.zeros(6 * steps)]),
    lbx=np.concatenate([[0.1], np.full(x.numel() - 1, -np.inf)]),
    lbg=np.concatenate([zeros, -ones]),
    ubg=np.concatenate([zeros, ones]),
)
stats = solver.stats()
values = np.array(found["x"]).ravel()
used = np.abs(np.array(found["g"]).ravel()[equal.numel() :]).reshape(-1, 6).max(axis=0)
print(f"{stats['return_status']} after {stats['iter_count']} iterations: {values[0]:.3f} s")
print("largest torque of each joint, in parts of its limit:", np.round(used, 3))
assert stats["success"] and used.max() < 1 + 1e-6 and values[0] < 2.0
