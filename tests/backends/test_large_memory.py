"""Machine code is loaded beside gigabytes of arrays, from which its sections must not be driven apart."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from abuse_helpers import function, in_process, robot, same_bits, samples

import linksweep as ls

GIGABYTE = 2**27  # float64 numbers; pages that nobody touches take no memory
FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "bias_forces", "gravity_forces",
    "several", "inverse_dynamics_rolled", "jacobian", "pose",
)  # fmt: skip


def beside_arrays(gigabytes: int, functions: int) -> None:
    """Compile functions, load them again from the cache, run a rollout, drop and load more, with arrays in between."""
    arrays = [np.empty(3 * GIGABYTE)]
    kept = []
    for k in range(functions):
        arm = robot("chain7").with_gravity((0.1 * k, 0.2, -9.81))
        wanted = FUNCTIONS[k % len(FUNCTIONS)]
        first = function(arm, wanted)
        args = samples(first, 9)
        again = function(arm, wanted)  # from the cache
        assert same_bits(again(*args), first(*args))
        if k % 2:
            kept.append(again)
        if sum(array.nbytes for array in arrays) < gigabytes * 2**30:
            arrays.append(np.empty(GIGABYTE))
    ls.simulate(robot("chain7"), np.zeros((20, 7)), duration=0.003, integrator=ls.simulation.RK4(threads=2))
    assert sum(array.nbytes for array in arrays) >= gigabytes * 2**30
    kept.clear()
    gc.collect()
    function(robot("chain7"), "inverse_with_forces")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of all runs: the first one compiles, all of them load."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.slow
@pytest.mark.parametrize("run", range(3))
def test_code_beside_large_arrays(run: int, cache: str):
    in_process(beside_arrays, 4, len(FUNCTIONS), LINKSWEEP_CACHE=cache)


@pytest.mark.slow
@pytest.mark.parametrize("run", range(20))
def test_fifty_functions_beside_eight_gigabytes(run: int, cache: str):
    in_process(beside_arrays, 8, 50, timeout=3600, LINKSWEEP_CACHE=cache)
