"""The frames in which the recursions run, against plain forward kinematics in the description's own frames."""

# pyright: reportAttributeAccessIssue=false
# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from robots_for_tests import (
    AXES,
    ROBOTS,
    at_rest,
    close,
    frame_pose,
    inverse_dynamics,
    kinematics,
    nested,
    random_inertial,
    random_rotation,
    robot,
    samples,
    turned,
)

import linksweep as ls
from linksweep.algorithms.inverse.newton_euler import newton_euler
from linksweep.algorithms.rigid_body.kinematics import WORLD, poses
from linksweep.mechanism.canonical import FAR, CanonicalLink, canonical
from linksweep.mechanism.sweeps import Unrolled
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import BASE, Joint, Model, Placement
from linksweep.spatial.algebra import ZERO_FORCE, Vec
from linksweep.spatial.transforms import Screw

pytestmark = pytest.mark.quick


def canonical_pose(model: Model, at: Any, name: str) -> np.ndarray:
    """The 4x4 matrix of a frame through the canonical frames."""
    frame = canonical(model).frame(name)
    pose = WORLD if frame.link == BASE else at[frame.link]
    T = np.eye(4)
    for column, v in enumerate(np.array(frame.placement.rotation).T.tolist()):
        T[:3, column] = list(pose.turn(Vec(*v)))
    T[:3, 3] = list(pose.point(Vec(*frame.placement.position)))
    return T


def check(model: Model, tolerance: float = 1e-12) -> None:
    """Poses of all frames, and the torques, as the oracle has them."""
    n = len(model.links)
    reach = 1 + sum(float(np.linalg.norm(link.joint.placement.position)) for link in model.links)
    random = np.random.default_rng(0)
    found = canonical(model)
    for q in (np.zeros(n), random.uniform(-3, 3, n), random.uniform(-3, 3, n)):
        bodies = kinematics(model, q)
        sweep = Unrolled(found, q.tolist())
        at = poses(sweep)
        far = reach + np.abs(q).sum()
        for frame in model.frames:
            expected, got = frame_pose(model, bodies, frame.name), canonical_pose(model, at, frame.name)
            assert np.abs(got[:3, :3] - expected[:3, :3]).max() <= tolerance, frame.name
            assert np.abs(got[:3, 3] - expected[:3, 3]).max() <= tolerance * far, frame.name
        qd, qdd = random.uniform(-1, 1, (2, n))
        result = newton_euler(
            sweep,
            sweep.split(qd.tolist()),
            sweep.split(qdd.tolist()),
            sweep.same(ZERO_FORCE),
            at_rest(Vec(*model.gravity)),
        )
        assert close(sweep.join(result.tau), inverse_dynamics(model, q, qd, qdd), 100 * tolerance)
    for link, own in zip(model.links, found.links, strict=True):
        nearest = float(np.linalg.norm(link.joint.placement.position))
        children = [np.linalg.norm(c.joint.placement.position) for c in model.links if c.name != link.name]
        limit = FAR * max([nearest, *children]) + 1e-12
        assert all(abs(x) <= 2 * limit for x in lengths(own)), "an origin slid far away"


def lengths(link: CanonicalLink) -> list[float]:
    factors = [x for f in link.factors for x in ([f.t] if isinstance(f, Screw) else [*f.p])]
    return [*factors, link.slide, *link.origin]  # type: ignore[list-item]


@pytest.mark.parametrize("name", ROBOTS)
def test_frames_and_torques_of_every_robot(name: str):
    check(robot(name).model)


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(seed: int):
    check(ls.robots.chain_model(2 + seed % 7, seed=seed, joints="mixed" if seed % 2 else "R"))


def tolerance_of(tilt: float) -> float:
    """Loading snaps a cosine within 1e-11 of 1 and leaves the sine: the described matrix is a rotation only to that."""
    return 4e-11 if 1e-14 < 1 - np.cos(tilt) < 1e-11 else 1e-12


def two_links(kinds: str, axes: Any, turn: Any, position: Any, third: bool = True) -> Model:
    """A chain whose second joint stands at `turn`, `position` in the first link; a general third one if asked."""
    random = np.random.default_rng(9)
    full = {"R": "revolute", "P": "prismatic"}
    places = [
        Placement(nested(random_rotation(random)), (0.1, 0.2, 0.3)),
        Placement(nested(turn), (float(position[0]), float(position[1]), float(position[2]))),
        Placement(nested(random_rotation(random)), (0.3, -0.1, 0.2)),
    ]
    parts = []
    for i, at in enumerate(places[: 2 + third]):
        joint = Joint(f"joint{i}", full[kinds[i]], tuple(axes[i % len(axes)]), at, armature=0.01 * i)
        parts.append(Part(f"link{i}", f"link{i - 1}" if i else "base", joint, random_inertial(random)))
    return assemble("two", parts, base="base")


POSITIONS = {
    "apart": (0.3, -0.2, 0.4),
    "intersecting": (0.0, 0.0, 0.4),
    "at one point": (0.0, 0.0, 0.0),
    "beside": (0.0, 0.5, 0.0),
}
KINDS = ("RRR", "RPR", "PRR", "PPP")


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("position", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("axes", [AXES, AXES[2:], AXES[::-1], ((0.6, 0.0, -0.8), (0.48, 0.6, 0.64))])
def test_axes_of_any_direction(kinds: str, position: Any, axes: Any):
    check(two_links(kinds, axes, np.eye(3), position))
    check(two_links(kinds, axes, turned(np.array([0.6, 0.0, 0.8]), 0.7), position))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("position", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("around", [0.0, np.pi], ids=["parallel", "antiparallel"])
@pytest.mark.parametrize("tilt", [0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 4e-6, 1e-5, 1e-4, 1e-3])
def test_nearly_parallel_axes(kinds: str, position: Any, around: float, tilt: float):
    """The common normal runs away as 1 / tilt: the frame must not follow it."""
    turn = turned(np.array([0.0, 1.0, 0.0]), around) @ turned(np.array([0.8, 0.6, 0.0]), tilt)
    z = ((0.0, 0.0, 1.0),)
    check(two_links(kinds, z, turn @ turned(np.array([0.0, 0.0, 1.0]), 0.3), position), tolerance_of(tilt))


def test_nearly_parallel_children_of_one_link():
    """All but one child stand in a frame that was chosen for another: also these with a far normal."""
    random = np.random.default_rng(4)
    parts = [Part("trunk", "base", Joint("trunk"), random_inertial(random))]
    for i, tilt in enumerate((1e-9, 1e-6, 1e-3, 0.5, 0.0)):
        about = np.array([np.cos(i), np.sin(i), 0.0])  # each tilts its own way
        x, y, z = random.uniform(-0.3, 0.3, 3).tolist()
        at = Placement(nested(turned(about, tilt)), (x, y, z))
        kind = "prismatic" if i == 1 else "revolute"
        parts.append(Part(f"arm{i}", "trunk", Joint(f"arm{i}", kind, placement=at), random_inertial(random)))
    parts.append(Part("hand", "arm0", Joint("hand", placement=at), random_inertial(random)))
    check(assemble("star", parts, base="base"), tolerance_of(1e-6))


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
@pytest.mark.parametrize("tilt", [1e-10, 1e-9, 1e-6, 4e-6, 1e-3])
def test_first_joints_nearly_along_the_axis_of_the_base(kind: str, tilt: float):
    """The base's frame is given: its children never choose it, however far the normal is."""
    random = np.random.default_rng(5)
    at = Placement(nested(turned(np.array([0.6, 0.8, 0.0]), tilt)), (0.3, -0.2, 0.1))
    parts = [
        Part("arm", "base", Joint("arm", kind, placement=at), random_inertial(random)),
        Part("hand", "arm", Joint("hand", placement=at), random_inertial(random)),
    ]
    check(assemble("near", parts, base="base"), tolerance_of(tilt))


def test_coordinates_follow_the_document():
    model = robot("tree9").model
    assert model.document_order != tuple(range(9))
    starts = [link.start for link in canonical(model).links]
    assert [starts[i] for i in model.document_order] == list(range(9))


def test_a_modified_dh_table_comes_back():
    """PUMA: one screw about x for each link, right angles exact, and no offset in any joint."""
    links = robot("puma560").canonical.links
    assert all(
        len(link.factors) <= 1 and all(isinstance(f, Screw) and f.axis == 0 for f in link.factors) for link in links
    )
    pairs = [(f.c, f.s) for link in links for f in link.factors]
    assert all(sorted(np.abs(np.array(pair))) == [0.0, 1.0] for pair in pairs)
    assert all(link.angle == 0.0 for link in links)


def test_masses_and_dissipation_arrive():
    bot = robot("tree14")
    for link, own in zip(bot.model.links, bot.canonical.links, strict=True):
        joint = link.joint
        assert (own.mass, own.armature, own.damping, own.friction) == (
            link.inertial.mass,
            joint.armature,
            joint.damping,
            joint.friction,
        )
        assert own.parent == link.parent and own.kind == joint.kind and own.name == link.name


def test_one_link_with_a_skew_axis():
    check(two_links("RP", ((0.48, 0.6, 0.64),), np.eye(3), (0, 0, 0), third=False))
    q = samples(robot("mixed1"), seed=1)[0]
    assert q.shape == (1,)
