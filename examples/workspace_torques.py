"""Compute the holding torques of a 2 kg payload in 100,000 random configurations of a PUMA 560."""

import time

import numpy as np

import linksweep as ls

bare = ls.robots.puma560()
loaded = bare.with_payload(bare.link_names[-1], mass=2.0, com=(0.0, 0.0, 0.1), inertia=np.diag([1e-3] * 3))

q = np.random.default_rng(0).uniform(-np.pi, np.pi, (100_000, bare.nq))
for robot in (bare, loaded):
    robot.gravity_forces(q[0])  # the first call compiles

start = time.perf_counter()
hold_bare, hold_loaded = bare.gravity_forces(q), loaded.gravity_forces(q)
elapsed = time.perf_counter() - start

print(f"{2 * len(q)} postures in {1e3 * elapsed:.1f} ms")
print("joint        largest holding torque, bare and with payload (N m)")
peaks = zip(bare.joint_names, np.abs(hold_bare).max(axis=0), np.abs(hold_loaded).max(axis=0), strict=True)
for name, without, with_payload in peaks:
    print(f"{name:<12} {without:10.3f} {with_payload:10.3f}")
