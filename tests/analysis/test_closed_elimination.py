"""Many loops without fill, free bodies as loads of what holds them, and the cost that is predicted."""

# pyright: reportCallIssue=false
from __future__ import annotations

import numpy as np
import pytest
from closed_chain_cases import dense_solution, grasp_case, tied, tree_case

import linksweep as ls
from linksweep.algorithms.closed_chain import swept
from linksweep.algorithms.closed_chain.carried import carried_bodies
from linksweep.algorithms.closed_chain.elimination import elimination_order
from linksweep.backends.interpreter import Interpreter
from linksweep.functions.defaults import predicted_operations
from linksweep.papers.studies.four_bar import single_dof_solution
from linksweep.robots.mechanisms import four_bars_upright
from linksweep.simulation import fixed_step
from linksweep.simulation.controllers import Constant
from linksweep.simulation.dynamics import forward_dynamics_of
from linksweep.simulation.fixed_step import Step


@pytest.mark.slow
@pytest.mark.parametrize(
    ("windows", "bar"), [(10, 1e-9), pytest.param(40, 1e-7, marks=pytest.mark.slow)]
)  # 2 is in test_closed_motion
def test_four_bars_in_a_row(windows: int, bar: float):
    """IFToMM A02: 10 s, RK4 of 1 ms, against the one freedom that it has."""
    robot = ls.robots.four_bars(windows)
    run = ls.simulate(robot, *four_bars_upright(robot), duration=10.0, every=100)
    top = robot.pose(run.q, "B0")[:, :2, 3]
    assert np.linalg.norm(top - single_dof_solution(windows, run.t), axis=1).max() < bar
    assert run.constraint_drift < 1e-12


def count(robot: ls.Robot) -> int:
    counts = robot.compile("forward_dynamics", backend="interpreter").counts
    return counts.mul + counts.add + counts.div


def test_loops_in_a_row_cost_the_same_each():
    """Omega is block tridiagonal: nothing fills, in whatever order the loops are given."""
    costs = [count(ls.robots.four_bars(n)) for n in (3, 6, 9)]
    assert costs[2] - costs[1] == costs[1] - costs[0]
    robot = ls.robots.four_bars(9)
    ties = [robot.constraints[k] for k in (4, 0, 8, 2, 6, 1, 3, 5, 7)]
    assert count(robot.without_constraints().with_constraints(ties)) < 1.02 * costs[2]


def test_order_of_elimination():
    ladder = [{k, k + 1} for k in (3, 0, 2, 1, 4)]
    order, near = elimination_order(ladder)
    assert sorted(order) == [0, 1, 2, 3, 4] and max(len(near[k]) for k in order) == 1
    star = [{0, 9}, {1, 9}, {9}]
    assert [len(elimination_order(star)[1][k]) for k in elimination_order(star)[0]] == [2, 1, 0]


@pytest.mark.parametrize("case", ["four bars", "two arms"])
def test_predicted_operations_of_closed_chains(case: str):
    robot = ls.robots.four_bars(8) if case == "four bars" else grasp_case((7, 7), ("rigid", "rigid"), 1)[0].robot
    # it chooses between programs that differ by a hundred: planar bars fold more than it knows
    assert 1 / 3 < predicted_operations(robot.canonical, "forward_dynamics", 0) / count(robot) < 3


# ---- long chains: no mass matrix, loops over the links -----------------------------------------------------------

FUNCTIONS = {
    "forward_dynamics": 3, "multipliers": 3, "allowed_rates": 2, "constraint_redundancy": 1,
}  # fmt: skip
LONG = {
    "every joint": lambda: tree_case(
        ("revolute", "spherical", "planar", "helical", "prismatic", "revolute", "revolute"),
        (("point", "flange5", "flange6"),), 1,
    ),
    "free base": lambda: tree_case(
        ("free", "revolute", "revolute", "revolute", "spherical", "revolute", "revolute"),
        (("slider", "flange3", "flange6"), ("plane", "flange5", ""), ("line", "flange2", "flange4")), 2,
    ),
    "redundant": lambda: tree_case(
        ("free", "revolute", "revolute", "spherical"), (("rigid", "flange3", ""), ("point", "flange3", "")), 3
    ),
    "chain": lambda: held(ls.robots.chain(14, seed=2), "rigid"),
    "row of zeros": lambda: held(ls.robots.planar(14), "point"),
}  # fmt: skip


def held(arm: ls.Robot, kind: str) -> tuple[ls.Robot, np.ndarray]:
    q = arm.random(np.random.default_rng(1))
    return tied(arm, q, [(kind, "tool", "")]), q


@pytest.mark.slow
@pytest.mark.cases(2)
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", LONG)
def test_sweeps_give_what_the_mass_matrix_gives(name: str, monkeypatch: pytest.MonkeyPatch):
    """Constraints of long chains, written out and as loops, against M = L^T D L."""
    robot, q = LONG[name]()
    rng = np.random.default_rng(0)
    args = q, robot.project_velocity(q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    functions = {function: args[:count] for function, count in FUNCTIONS.items()}
    wanted, written, loops = [], [], []
    for function, given in functions.items():
        monkeypatch.setattr(swept, "LONG", 1000)
        wanted.append(robot.compile(function, rolled=False)(*given))
        monkeypatch.setattr(swept, "LONG", 0)
        written.append(robot.with_gravity(robot.gravity).compile(function, rolled=False)(*given))
        loops.append(robot.compile(function, rolled=True)(*given))
    K = robot.constraint_jacobian(q)
    for found in (written, loops):
        for function, ours, theirs in zip(functions, found, wanted, strict=True):
            if function == "constraint_redundancy":
                np.testing.assert_allclose(ours[0].sum(), theirs[0].sum(), atol=1e-6)
                assert ours[1].max() < 1e-6
            elif function == "multipliers":
                np.testing.assert_allclose(ours @ K, theirs @ K, atol=1e-9 * np.abs(theirs @ K).max())
            else:
                np.testing.assert_allclose(ours, theirs, atol=1e-9 * np.abs(theirs).max())


@pytest.mark.slow
def test_a_step_of_a_long_closed_chain_is_loops():
    """40 joints: written out, LLVM would take minutes for the step of a chain in space."""
    robot, _ = held(ls.robots.chain(40, seed=1), "point")
    law = Constant(np.zeros(robot.nv))
    forward_dynamics = forward_dynamics_of(robot, None, False)
    kernel = Step(robot, law, "rk4", forward_dynamics).kernel("float64", "interpreter")
    assert isinstance(kernel, Interpreter) and kernel.program.rolled
    assert sum(len(body.nodes) for body in kernel.program.bodies()) < 20_000


@pytest.mark.usefixtures("interpreted")
@pytest.mark.slow
def test_steps_as_loops_and_written_out_agree(monkeypatch: pytest.MonkeyPatch):
    arm = ls.robots.planar(13)
    robot, q = held(arm, "line")
    runs = []
    for small in (10**9, 0):
        monkeypatch.setattr(fixed_step, "CLOSED_SMALL", small)
        fixed_step._unrolled_or_looped.cache_clear()
        runs.append(ls.simulate(robot, q, duration=3e-3))
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    assert max(run.constraint_drift for run in runs) < 1e-12


CARRIED = {
    "three arms": ((6, 7, 5), ("rigid",) * 3, 11),
    "rigid after others": ((4, 6, 6), ("point", "rigid", "rigid"), 12),
    "one rigid, one sliding": ((6, 4), ("rigid", "frictionless"), 13),
}


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LINKSWEEP_BACKEND", "interpreter")


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_body_that_is_held_is_a_load(name: str, swapped: bool):
    """Multipliers and accelerations as of a dense solve; swapped: the body is frame a of every constraint."""
    grasp, q, pose = grasp_case(*CARRIED[name])
    robot, at = grasp.robot, grasp._q(q, pose)
    if swapped:
        kinds = [(tie.kind if tie.kind != "plane" else "point", tie.b, tie.a) for tie in robot.constraints]
        robot = robot.without_constraints().with_constraints([ls.Constraint(*kind) for kind in kinds])
    bodies = carried_bodies(robot.canonical)
    assert len(bodies) == 1 and len(bodies[0].holds) == [tie.kind for tie in robot.constraints].count("rigid")
    rng = np.random.default_rng(0)
    near = robot.project(robot.integrate(at, 0.05 * rng.normal(size=(8, robot.nv))))
    qd = robot.project_velocity(near, rng.normal(size=(8, robot.nv)))
    tau = 5 * rng.normal(size=(8, robot.nv))
    assert np.abs(robot.constraint_jacobian(near) @ qd[..., None]).max() < 1e-9
    function = robot.compile(["forward_dynamics", "multipliers"], backend="interpreter")
    qdd, multipliers = function(near, qd, tau)
    theirs, force = dense_solution(robot, near, qd, tau)
    ours = (np.swapaxes(robot.constraint_jacobian(near), -1, -2) @ multipliers[..., None])[..., 0]
    assert np.abs(qdd - theirs).max() < 1e-9 * np.abs(theirs).max()
    assert np.abs(ours - force).max() < 1e-9 * np.abs(force).max()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.slow
def test_an_open_constraint_is_held_as_it_stands():
    """Off the constraints, and with rates that open them: still M qdd + K^T lambda = T', K qdd + k = 0."""
    grasp, q, pose = grasp_case((6, 7), ("rigid", "rigid"), 1)
    robot, at = grasp.robot, grasp._q(q, pose)
    rng = np.random.default_rng(2)
    q = robot.integrate(at, 0.1 * rng.normal(size=robot.nv))
    qd, tau = rng.normal(size=(2, robot.nv))
    assert np.abs(robot.constraint_error(q)).max() > 0.01
    function = robot.compile(["forward_dynamics", "multipliers"], backend="interpreter")
    qdd, multipliers = function(q, qd, tau)
    K, k = robot.constraint_jacobian(q), robot.constraint_bias(q, qd)
    assert np.abs(K @ qdd + k).max() < 1e-10 * np.abs(K).max() * np.abs(qdd).max()
    left = robot.mass_matrix(q) @ qdd + robot.bias_forces(q, qd) + K.T @ multipliers - tau
    assert np.abs(left).max() < 1e-10 * np.abs(tau).max() * np.abs(multipliers).max()


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_bodies_that_are_no_loads():
    """What hangs on a body that is one already, and what only a point holds."""
    assert not carried_bodies(grasp_case((6, 6), ("point", "point"), 1)[0].robot.canonical)
    box = ls.body(1.0, inertia=(0.1, 0.1, 0.1))
    scene = ls.scene({"arm": ls.robots.puma560(), "one": box, "two": box})
    chained = scene.with_constraints([ls.Constraint("rigid", "one", "arm/tool"), ls.Constraint("rigid", "two", "one")])
    bodies = carried_bodies(chained.canonical)
    assert [chained.canonical.links[body.link].name for body in bodies] == ["one"] and bodies[0].holds == (0, 1)
    q = chained.project(chained.neutral())
    qd = chained.project_velocity(q, np.ones(chained.nv))
    theirs, _ = dense_solution(chained, q[None], qd[None], np.ones((1, chained.nv)))
    ours = chained.compile("forward_dynamics", backend="interpreter")(q, qd, np.ones(chained.nv))
    assert np.abs(ours - theirs[0]).max() < 1e-9 * np.abs(theirs).max()
