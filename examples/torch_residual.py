"""Learn unmodelled friction as a residual of inverse dynamics, with a small PyTorch network."""

import numpy as np

import linksweep as ls

try:
    import torch  # pyright: ignore[reportMissingImports]

    from linksweep.torch import wrap
except ImportError:
    raise SystemExit(print("This example needs torch: pip install linksweep[torch]")) from None

torch.manual_seed(0)
robot = ls.robots.puma560()
inverse = wrap(robot.compile("inverse_dynamics"))


def measured(count: int, seed: int):
    """States and the torques that a real arm would need: rigid dynamics, and friction with a Stribeck curve."""
    q, qd, qdd = np.random.default_rng(seed).uniform(-1.5, 1.5, (3, count, 6))
    friction = robot.friction * np.tanh(qd / 0.05) * (0.7 + 0.3 * np.exp(-((qd / 0.3) ** 2))) + 2.0 * qd
    return [torch.tensor(x) for x in (q, qd, qdd, robot.inverse_dynamics(q, qd, qdd) + friction)]


network = torch.nn.Sequential(torch.nn.Linear(12, 48), torch.nn.Tanh(), torch.nn.Linear(48, 6)).double()
mass = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)  # the rigid part is 20 % off, and is learnt too


def torques(q, qd, qdd):
    return mass * inverse(q, qd, qdd) + network(torch.cat([qd, torch.tanh(qd / 0.1)], -1))


q, qd, qdd, tau = measured(2000, 0)
optimiser = torch.optim.Adam([*network.parameters(), mass], lr=1e-2)
for _ in range(400):
    optimiser.zero_grad()
    loss = ((torques(q, qd, qdd) - tau) ** 2).mean()
    loss.backward()
    optimiser.step()
q, qd, qdd, tau = measured(500, 1)  # of which nothing was learnt
with torch.no_grad():
    before = (inverse(q, qd, qdd) - tau).pow(2).mean().sqrt()
    after = (torques(q, qd, qdd) - tau).pow(2).mean().sqrt()
print(f"torques are off by {before:.2f} N m without the residual, {after:.2f} N m with it; scale {mass.item():.3f}")
assert after < 0.2 * before
