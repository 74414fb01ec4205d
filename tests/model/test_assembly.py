"""Parts to Model: tree, folding of fixed joints, checks and their sentences, payloads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from linksweep.errors import ArgumentError, DescriptionError, ModelWarning
from linksweep.model.assembly import Part, assemble, find_frame, with_payload
from linksweep.model.model import BASE, Inertial, Joint, Limits, Model, Placement, compose, inverse, merge
from linksweep.model.quantities import as_inertia
from linksweep.robots import chain_model, puma560_model

BODY = Inertial(2.0, (0.1, 0.2, 0.3), ((0.3, 0.01, 0.02), (0.01, 0.4, 0.03), (0.02, 0.03, 0.5)))
TURNED = Placement(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (0.5, 0.0, 0.1))


def part(link: str, parent: str, kind: str = "revolute", body: Inertial = BODY, **joint: object) -> Part:
    return Part(link, parent, Joint(f"j_{link}", kind, **joint), body)  # type: ignore[arg-type]


def build(*parts: Part, **options: object) -> Model:
    return assemble("r", parts, base="base", **options)  # type: ignore[arg-type]


def random_placement(seed: int) -> Placement:
    at = pin.SE3(pin.exp3(np.random.default_rng(seed).normal(size=3)), np.array([0.1, -0.2, 0.3]))
    return Placement(tuple(tuple(row) for row in at.rotation.tolist()), tuple(at.translation.tolist()))  # type: ignore[arg-type]


def as_pin(body: Inertial) -> pin.Inertia:
    return pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))


def as_se3(at: Placement) -> pin.SE3:
    return pin.SE3(np.array(at.rotation), np.array(at.position))


# ---- tree ------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_links_are_sorted_parents_first_and_document_order_is_kept_for_coordinates():
    model = build(part("tip", "middle"), part("other", "base"), part("middle", "root"), part("root", "base"))
    assert [link.name for link in model.links] == ["other", "root", "middle", "tip"]
    assert [link.parent for link in model.links] == [BASE, BASE, 1, 2]
    assert [model.links[i].name for i in model.document_order] == ["tip", "other", "middle", "root"]


def test_a_topological_document_keeps_its_order():
    model = build(part("a", "base"), part("b", "a"), part("c", "base"), part("d", "b"), part("e", "c"))
    assert [link.name for link in model.links] == list("abcde")
    assert model.document_order == (0, 1, 2, 3, 4)


@pytest.mark.quick
def test_fixed_joints_are_folded_with_their_inertia_and_every_name_stays_a_frame():
    model = build(
        part("mount", "base", "fixed", placement=TURNED),
        part("arm", "mount", placement=TURNED),
        part("flange", "arm", "fixed", placement=TURNED),
        part("tool", "flange", "fixed", placement=TURNED),
        part("finger", "tool", "prismatic", placement=TURNED),
    )
    assert [link.name for link in model.links] == ["arm", "finger"]
    assert [frame.name for frame in model.frames] == ["base", "mount", "arm", "flange", "tool", "finger"]
    assert [frame.link for frame in model.frames] == [BASE, BASE, 0, 0, 0, 1]
    assert find_frame(model, "arm").placement == Placement()
    assert find_frame(model, "tool").placement == compose(TURNED, TURNED)
    assert model.links[0].joint.placement == compose(TURNED, TURNED)
    assert model.links[1].joint.placement == compose(TURNED, compose(TURNED, TURNED))

    step = as_se3(TURNED)
    expected = as_pin(BODY) + step.act(as_pin(BODY)) + (step * step).act(as_pin(BODY))
    assert np.allclose(as_pin(model.links[0].inertial).matrix(), expected.matrix(), rtol=0, atol=1e-14)
    assert model.links[1].inertial == BODY


@pytest.mark.slow
def test_ten_thousand_links_in_reverse_order():
    n = 10_000
    parts = [part(f"l{i}", f"l{i - 1}" if i else "base", "revolute" if i % 2 else "fixed") for i in range(n)]
    model = build(*reversed(parts))
    assert len(model.links) == n // 2
    assert model.document_order == tuple(reversed(range(n // 2)))


def test_the_model_is_hashable_and_compares_by_value():
    assert hash(build(part("a", "base"))) == hash(build(part("a", "base")))
    assert build(part("a", "base")) == build(part("a", "base"))
    assert build(part("a", "base")) != build(part("a", "base"), gravity=(0, 0, 0))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], r"'r' has 0 joints and none of them moves"),
        ([part("a", "base", "fixed")], r"'r' has 1 joints and none of them moves.*at least one"),
        ([part("a", "base"), part("a", "base")], r"link name 'a' is used twice"),
        ([part("base", "a"), part("a", "base")], r"link name 'base' is used twice"),
        (
            [part("a", "base"), replace(part("b", "a"), joint=Joint("j_a"))],
            r"joint name 'j_a' is used twice",
        ),
        ([part("", "base")], r"a link is called ''"),
        ([part("elbow", "base"), part("b", "elbov")], r"parent link 'elbov'.*did you mean 'elbow'"),
        (
            [part("a", "base"), part("b", "d"), part("c", "b"), part("d", "c")],
            r"'b', 'd', 'c' form a loop",
        ),
        ([part("a", "a")], r"links 'a' form a loop"),
        ([part("a", "base", "hinge")], r"'j_a' is 'hinge', expected 'revolute', 'prismatic', 'helical', .*'fixed'"),
    ],
)
def test_impossible_trees_are_refused(parts: list[Part], message: str):
    with pytest.raises(DescriptionError, match=message):
        build(*parts)


def test_a_loop_names_only_its_own_links():
    with pytest.raises(DescriptionError) as caught:
        build(part("a", "base"), part("x", "b"), part("b", "c"), part("c", "b"))
    assert "'x'" not in str(caught.value)


# ---- numbers ---------------------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf
MIRROR = ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
SHEARED = ((1.0, 1e-5, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            part("a", "base", body=replace(BODY, mass=-1.0)),
            r"mass of link 'a' is -1.0, expected zero or more",
        ),
        (part("a", "base", body=replace(BODY, mass=NAN)), r"mass of link 'a' is nan, expected finite"),
        (part("a", "base", body=replace(BODY, com=(0, INF, 0))), r"com of link 'a' is \[0.0, inf, 0.0\]"),
        (
            part("a", "base", body=replace(BODY, mass=1e200)),
            r"mass of link 'a' is 1e\+200, expected finite .* 1e\+30",
        ),
        (part("a", "base", body=replace(BODY, inertia=MIRROR)), r"inertia of link 'a' .* no negative moment"),
        (part("a", "base", body=replace(BODY, inertia=SHEARED)), r"inertia of link 'a' .* symmetric"),
        (
            part("a", "base", axis=(0, 0, 0)),
            r"axis of joint 'j_a' is \[0.0, 0.0, 0.0\], expected a direction",
        ),
        (part("a", "base", axis=(0, NAN, 0)), r"axis of joint 'j_a'.*finite"),
        (part("a", "base", placement=Placement(MIRROR)), r"placement of joint 'j_a' .* proper rotation"),
        (part("a", "base", placement=Placement(SHEARED)), r"placement of joint 'j_a' .* proper rotation"),
        (
            part("a", "base", armature=-0.1),
            r"armature or friction of joint 'j_a' is \[-0.1, 0.0\]",
        ),
        (part("a", "base", friction=-0.1), r"armature or friction of joint 'j_a' .*zero or more"),
        (part("a", "base", friction=NAN), r"armature, damping or friction of joint 'j_a' .*finite"),
        (part("a", "base", limits=Limits(lower=NAN)), r"limits of joint 'j_a' .* expected numbers"),
    ],
)
def test_impossible_numbers_are_refused(bad: Part, message: str):
    with pytest.raises(DescriptionError, match=message):
        build(part("fine", "base"), bad)


def test_errors_say_file_and_line():
    with pytest.raises(DescriptionError, match=r"^arm\.urdf, line 7: the mass of link 'a'"):
        build(replace(part("a", "base", body=Inertial(-1.0)), line=7), source="arm.urdf")


def test_bad_gravity_is_refused():
    with pytest.raises(DescriptionError, match="gravity is 2 values, expected three numbers"):
        build(part("a", "base"), gravity=(0, 0))


def test_axes_become_unit_vectors():
    axis = build(part("a", "base", axis=(3.0, 0.0, 4.0))).links[0].joint.axis
    assert axis == pytest.approx((0.6, 0.0, 0.8), abs=1e-16)


def test_rotations_and_axes_are_snapped_and_inertias_never():
    tiny = 6e-12
    turn = ((tiny, -1.0 + tiny, 0.0), (1.0, -tiny, 0.0), (0.0, 0.0, 1.0))
    body = Inertial(1.0, (tiny, 0.0, 0.0), ((1.0, tiny, 0.0), (tiny, 1.0, 0.0), (0.0, 0.0, 1.0)))
    link = build(part("a", "base", body=body, axis=(tiny, 0.0, 1.0), placement=Placement(turn))).links[0]
    assert link.joint.placement.rotation == ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    assert link.joint.axis == (0.0, 0.0, 1.0)
    assert link.inertial == body
    coarse = ((2.7e-8, -1.0, 0.0), (1.0, 2.7e-8, 0.0), (0.0, 0.0, 1.0))
    kept = build(part("a", "base", placement=Placement(coarse))).links[0].joint.placement.rotation
    assert kept[0][0] == 2.7e-8


def diagonal(x: float, y: float, z: float, mass: float = 1.0) -> Inertial:
    return Inertial(mass, inertia=as_inertia((x, y, z)))


def test_inertias_of_no_rigid_body_give_one_warning_that_names_all():
    odd = replace(BODY, inertia=((1.0, 2.0, 0.0), (2.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    with pytest.warns(ModelWarning) as caught:
        build(
            part("a", "base", body=diagonal(1, 1, 3)),
            part("b", "a", body=diagonal(1, 1, 2)),
            part("c", "b", body=diagonal(0, 5, 0)),
            part("d", "c", body=odd),
        )
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "'d' has a negative principal moment" in message
    assert "'a', 'c' violates the triangle inequality" in message
    assert "'b'" not in message


@pytest.mark.parametrize(
    "fine",
    [
        part("a", "base", body=diagonal(0, 0, 0.35, mass=0.0)),  # a joint's own inertia, as of PUMA's link 1
        part("a", "base", body=diagonal(0.35, 0, 0, mass=0.0), axis=(2.0, 0.0, 0.0)),
        replace(part("a", "base", body=diagonal(1, 1, 3)), measured=True),
        part("a", "base", body=Inertial()),
        part("a", "base", body=Inertial(1.0)),
        part("a", "base", body=diagonal(-5e-20, -5e-20, 0.0)),  # as iCub's file says zero
    ],
)
def test_known_ways_of_writing_do_not_warn(fine: Part):
    build(fine)


@pytest.mark.parametrize("body", [diagonal(0, 0, 1, mass=1.0), diagonal(1, 0, 0, mass=0.0)])
def test_the_exception_is_for_massless_links_about_their_own_axis(body: Inertial):
    with pytest.warns(ModelWarning, match="'a' violates the triangle inequality"):
        build(part("a", "base", body=body))


# ---- placements, inertias, payload -------------------------------------------------------------------------


@pytest.mark.quick
def test_compose_and_inverse_are_those_of_pinocchio():
    a, b = random_placement(1), random_placement(2)
    assert np.allclose(as_se3(compose(a, b)).homogeneous, (as_se3(a) * as_se3(b)).homogeneous, atol=1e-15)
    assert np.allclose(as_se3(inverse(a)).homogeneous, as_se3(a).inverse().homogeneous, atol=1e-15)


@pytest.mark.quick
def test_merge_is_that_of_pinocchio_and_exact_for_massless_bodies():
    at = random_placement(3)
    other = Inertial(0.7, (0.3, -0.2, 0.1), as_inertia((0.1, 0.2, 0.25, 0.01, -0.02, 0.03)))
    expected = as_pin(BODY) + as_se3(at).act(as_pin(other))
    assert np.allclose(as_pin(merge(BODY, other, at)).matrix(), expected.matrix(), rtol=0, atol=1e-14)
    assert merge(BODY, Inertial(), at) == BODY
    assert merge(Inertial(), BODY, Placement()) == BODY
    assert merge(Inertial(com=(1.0, 0.0, 0.0)), Inertial(), at).mass == 0


@pytest.mark.quick
def test_payload_at_a_frame_is_seen_by_its_link():
    model = build(part("arm", "base"), part("tool", "arm", "fixed", placement=TURNED))
    loaded = with_payload(model, "tool", 3.0, (0.0, 0.0, 0.05), (0.01, 0.01, 0.02))
    expected = as_pin(model.links[0].inertial) + as_se3(TURNED).act(
        pin.Inertia(3.0, np.array([0, 0, 0.05]), np.diag([0.01, 0.01, 0.02]))
    )
    assert np.allclose(as_pin(loaded.links[0].inertial).matrix(), expected.matrix(), rtol=0, atol=1e-14)
    assert loaded.frames == model.frames and model == build(*model_parts())
    on_base = with_payload(model, "base", 3.0)
    assert on_base.links == model.links and on_base.base_inertial.mass == 3.0  # it counts when the base is set free


def model_parts() -> list[Part]:
    return [part("arm", "base"), part("tool", "arm", "fixed", placement=TURNED)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("tol", 1.0), ArgumentError, r"no link or frame 'tol' .did you mean 'tool'"),
        (("link1", -1.0), DescriptionError, r"mass of link 'payload' is -1.0"),
        (("link1", "heavy"), DescriptionError, r"payload mass is 'heavy', expected a real number"),
        (("link1", 1.0, (0, 0)), DescriptionError, r"payload com is 2 values, expected three"),
        (("link1", 1.0, (0, 0, NAN)), DescriptionError, r"payload com is .*nan.*finite"),
        (("link1", 1.0, (0, 0, 0), (1, 2)), DescriptionError, r"inertia is \(1, 2\), expected 3 "),
        (("link1", 1.0, (0, 0, 0), (-1, 1, 1)), DescriptionError, r"inertia of link 'payload' .*no negative"),
    ],
)
def test_bad_payloads_are_refused(arguments: tuple, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        with_payload(puma560_model(), *arguments)


def test_as_inertia_takes_three_six_or_nine_numbers():
    full = ((1.0, 4.0, 5.0), (4.0, 2.0, 6.0), (5.0, 6.0, 3.0))
    assert as_inertia([1, 2, 3]) == ((1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 3.0))
    assert as_inertia((1, 2, 3, 4, 5, 6)) == full
    assert as_inertia(np.array(full)) == full


@pytest.mark.parametrize(
    "bad",
    [
        None,
        3.0,
        "abc",
        (1, 2),
        (1, 2, 3, 4),
        [[1, 2], [3, 4]],
        [[1, 0, 0], 2, 3],
        {},
        (1, 2, 3j),
        (True, 1, 1),
    ],
)
def test_as_inertia_refuses_other_shapes(bad: object):
    with pytest.raises(DescriptionError, match=r"expected (3 |a real number)"):
        as_inertia(bad)


def test_as_inertia_refuses_an_asymmetric_matrix():
    with pytest.raises(DescriptionError, match="expected a symmetric matrix"):
        as_inertia([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])


def test_many_names_are_cut_in_messages():
    with pytest.raises(ArgumentError, match=r"expected one of 'base', .* and 94 more"):
        find_frame(chain_model(100), "zzz")
