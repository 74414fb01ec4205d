"""The viewer without a browser: what its server holds, its controls, recordings, live simulations, and bad input."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import base64
import json
import re
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robots_for_tests import URDF as ROBOT_URDF
from robots_for_tests import robot

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Limits, Placement

pytest.importorskip("viser", reason="the viewer is built on viser: pip install viser")

from linksweep.viewer import LAYERS, Box, Scene, Viewer, live, playback, plot_panel, show
from linksweep.viewer import controls as panel_controls
from linksweep.viewer.overlays import arc_arrow, inertia_ellipsoid, velocity_ellipsoid

BODY = Inertial(1.0, (0.1, 0.0, 0.05), ((0.1, 0.0, 0.0), (0.0, 0.12, 0.0), (0.0, 0.0, 0.14)))
KINDS = ("revolute", "prismatic", "helical", "planar", "spherical", "free")


def every_kind() -> ls.Robot:
    """A chain with a joint of every kind."""
    parts, on = [], "base"
    for k, kind in enumerate(KINDS):
        limits = Limits(-0.5, 1.5) if kind == "prismatic" else Limits()
        joint = Joint(f"j{k}", kind, (0.0, 0.6, 0.8), Placement(position=(0.2, 0.0, 0.1)), limits=limits, pitch=0.1)
        parts.append(Part(f"l{k}", on, joint, BODY))
        on = f"l{k}"
    return ls.Robot(assemble("kinds", parts, base="base"))


@pytest.fixture
def opened() -> Iterator[Callable[..., Viewer]]:
    """`show` on a free port; what it opened is closed at the end."""
    viewers: list[Viewer] = []

    def open_one(bot: Any, *arguments: Any, **options: Any) -> Viewer:
        viewers.append(show(bot, *arguments, **{"port": 0, "browser": False, **options}))
        return viewers[-1]

    yield open_one
    for viewer in viewers:
        viewer.close()


def worst(viewer: Viewer) -> float:
    """How far the nodes of the first robot are from where it stands."""
    from scipy.spatial.transform import Rotation

    shown, far = viewer.first, 0.0
    for name in (shown.model.base, *shown.full.link_names):
        node = viewer.scene.server.scene.get_handle_by_name(shown.node(name))
        pose = np.eye(4)
        pose[:3, :3] = Rotation.from_quat(np.roll(node.wxyz, -1)).as_matrix()
        pose[:3, 3] = node.position
        far = max(far, float(np.abs(pose - shown.robot.pose(shown.q, name)).max()))
    return far


def until(reached: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


# ---- poses ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["puma560", "stanford", "planar3", "tree9", "mixed8", "urdf"])
def test_nodes_stand_where_the_links_are(name: str, opened: Callable[..., Viewer]):
    bot = robot(name)
    q = bot.random(np.random.default_rng(0))
    viewer = opened(bot, q)
    assert worst(viewer) < 1e-14
    viewer.q = q + 1e-9  # viser by itself drops steps below 1e-5
    assert worst(viewer) < 1e-14


def test_nodes_are_placed_without_viser_s_own_messages_too(
    opened: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch
):
    import viser._messages  # pyright: ignore[reportMissingImports]

    bot = robot("puma560")
    viewer = opened(bot)
    monkeypatch.delattr(viser._messages, "SetPositionMessage")
    q = bot.random(np.random.default_rng(0))
    monkeypatch.setattr("linksweep.viewer.scene.place", lambda node, *pose: placed.append((node.name, *pose)))
    placed: list[Any] = []
    viewer.first.move(q)
    assert len(placed) == 7
    for link, (name, position, _) in zip(bot.link_names, placed[1:], strict=True):
        assert name == viewer.first.node(link) and np.array_equal(position, bot.pose(q, link)[:3, 3])


def test_every_kind_of_joint(opened: Callable[..., Viewer]):
    bot = every_kind()
    q = bot.random(np.random.default_rng(1))
    viewer = opened(bot, q)
    assert worst(viewer) < 1e-13
    assert np.abs(bot.poses(viewer.controls.sliders.q) - bot.poses(q)).max() < 1e-12
    for layer in set(LAYERS) - {"forces"}:
        viewer.show_layer(layer)
    viewer.q = bot.random(np.random.default_rng(2))
    assert worst(viewer) < 1e-13


def test_standard_dh_and_edited_robots(opened: Callable[..., Viewer]):
    rows = [{"a": 0.3, "alpha": 0.5, "mass": 1.0, "inertia": [0.1, 0.1, 0.1]} for _ in range(3)]
    standard = ls.Robot.from_dh(rows, convention="standard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # a base without inertia
        floating = standard.with_base("floating")
    for bot in (standard, floating, standard.lock("joint2", at={"joint2": 0.7})):
        viewer = opened(bot, bot.random(np.random.default_rng(0)))
        assert worst(viewer) < 1e-14


def test_a_locked_robot_looks_as_the_whole_one_there(tmp_path: Path, opened: Callable[..., Viewer]):
    path = tmp_path / "arm.urdf"
    path.write_text(
        re.sub(
            r'<link name="(\w+)">',
            lambda m: (
                f'<link name="{m[1]}"><visual><origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/><geometry>'
                '<box size="0.1 0.2 0.3"/></geometry></visual>'
            ),
            ROBOT_URDF,
        )
    )
    whole = ls.load(path)
    q = np.array([0.3, 0.4, -0.2])
    locked = whole.lock("turn", at={"turn": q[whole.joint_names.index("turn")]})
    rest = np.array([q[whole.joint_names.index(name)] for name in locked.joint_names])
    first, second = opened(whole, q).first, opened(locked, rest).first
    assert len(first.corners) == len(second.corners) > 3
    for one, other in zip(_corners(first), _corners(second), strict=True):
        assert np.abs(one - other).max() < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # a base without inertia
        free = whole.with_base("floating")
    floating = opened(free, [0, 0, 0, 1, 0, 0, 0, *q]).first
    assert len(floating.corners) == len(first.corners)
    assert all(np.abs(a - b).max() < 1e-12 for a, b in zip(_corners(first), _corners(floating), strict=True))


def _corners(shown: Any) -> list[np.ndarray]:
    found = []
    for link, corners in shown.corners:
        pose = shown.poses[shown.frame_index[shown.link_names[link]]]
        found.append(corners @ pose[:3, :3].T + pose[:3, 3])
    return sorted(found, key=lambda c: tuple(c[0]))


def test_coupled_robots(tmp_path: Path, opened: Callable[..., Viewer]):
    text = ROBOT_URDF.replace('<axis xyz="-1 0 0"/>', '<axis xyz="-1 0 0"/><mimic joint="turn" multiplier="0.5"/>')
    (tmp_path / "m.urdf").write_text(text)
    bot = ls.load(tmp_path / "m.urdf", mimic="couple")
    assert len(bot.couplings) == 1
    viewer = opened(bot, [0.2, 0.6])
    viewer.show_layer("torques")
    viewer.show_layer("com")
    assert len(viewer.controls.sliders.sliders) == 2 and worst(viewer) < 1e-14
    moving = opened(bot, np.linspace([0, 0], [0.3, 0.4], 20), np.linspace(0, 1, 20))
    moving.seek(0.5)
    assert np.abs(moving.q - [0.15, 0.2]).max() < 1e-12 and worst(moving) < 1e-14
    viewer.start()


def test_several_robots_and_what_acts_on_them():
    with Scene(port=0) as scene:
        one = scene.add(robot("puma560"))
        other = scene.add(robot("puma560"), placement=[1.0, 0.0, 0.0], color=(1, 0, 0), opacity=0.5)
        assert (one.name, other.name) == ("puma560", "puma560 2")
        tip = other.world("tool")
        assert np.abs(tip[:3, 3] - one.world("tool")[:3, 3] - [1, 0, 0]).max() < 1e-14
        scene.arrows("forces", [tip[:3, 3]], [[0, 0, -9.81]], scale=0.05)
        scene.arrows("forces", np.zeros((3, 3)), np.ones((3, 3)))  # replaces
        assert len(scene.cones("friction", np.zeros((2, 3)), [[0, 0, 1], [0, 1, 1]], friction=[0.5, 0.8])) == 2
        scene.cones("friction", [0, 0, 0], [0, 0, 1], angle=0.3)
        scene.lines("path", np.eye(3))
        scene.solid("box", Box((0.1, 0.2, 0.3)), np.eye(4), color=(0.2, 0.3, 0.4))
        scene.frame_camera()
        names = scene.server.scene._handle_from_node_name
        assert {"/items/forces", "/items/friction/0", "/items/path", "/items/box"} <= set(names)
        assert "/items/friction/1" not in names
        other.remove()
        scene.remove("box")
        assert "/robots/puma560 2/links/link1" not in names and "/items/box" not in names and len(scene.robots) == 1
        assert "puma560" in repr(scene) and f'src="{scene.url}"' in scene._repr_html_()


def test_camera_presets_see_the_robot():
    """From every preset the camera looks at the middle of the robot, from the direction of its name."""
    with Scene(port=0) as scene:
        shown = scene.add(robot("puma560"))
        scene.frame_camera()
        low, high = shown.bounds()
        for view, axis in (("front", [1, 0, 0]), ("side", [0, -1, 0]), ("top", [0, 0, 1])):
            position, target = (np.array(point) for point in scene._camera(view, low, high))
            assert np.abs(target - 0.5 * (low + high)).max() < 1e-12
            direction = (position - target) / np.linalg.norm(position - target)
            assert direction @ axis > 0.999
        with pytest.raises(ls.ArgumentError, match="view is 'below'"):
            scene.set_view("below")


# ---- sliders -------------------------------------------------------------------------------------------------


def test_sliders_stay_within_limits():
    joint = Joint("j", "revolute", limits=Limits(-0.12345678, 2.71828))
    (freedom,) = panel_controls.slider_ranges(joint, 1.0)
    assert (freedom.low, freedom.high) == (-0.12345678, 2.71828)
    free = panel_controls.slider_ranges(Joint("j", "revolute"), 1.0)[0]
    assert (free.low, free.high) == (-np.pi, np.pi)
    half = panel_controls.slider_ranges(Joint("j", "prismatic", limits=Limits(lower=5.0)), 2.0)[0]
    assert (half.low, half.high) == (5.0, 7.0)
    assert panel_controls.slider_ranges(Joint("j", "revolute", limits=Limits(upper=-9.0)), 1.0)[0].low < -9.0
    stuck = panel_controls.slider_ranges(Joint("j", "revolute", limits=Limits(1.0, 1.0)), 1.0)[0]
    assert stuck.low < 1.0 < stuck.high


def test_a_slider_at_its_end_is_the_limit_itself(opened: Callable[..., Viewer]):
    parts = [Part("l", "base", Joint("j", limits=Limits(-0.12345678, 2.71828)), BODY)]
    viewer = opened(ls.Robot(assemble("one", parts, base="base")), [0.0])
    sliders = viewer.controls.sliders
    slider = sliders.sliders[0][0]
    slider.value = slider.max
    assert sliders.q == [2.71828]
    slider.value = slider.min
    assert sliders.q == [-0.12345678]


@pytest.mark.parametrize("pitch", [0.3, -1.2, np.pi / 2, -np.pi / 2])
@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_angles_of_a_turn(kind: str, pitch: float):
    from scipy.spatial.transform import Rotation

    joint = Joint("j", kind)
    wanted = Rotation.from_euler("xyz", [0.4, pitch, -2.0])
    q = np.array([*wanted.as_quat(), 1.0, 2.0, 3.0][: 4 if kind == "spherical" else 7])
    values = panel_controls.to_sliders(joint, 2.5 * q if kind == "spherical" else q)
    back = panel_controls.from_sliders(joint, values)
    assert (Rotation.from_quat(back[:4]).inv() * wanted).magnitude() < 1e-7
    assert back[4:] == list(q[4:])


# ---- motions -------------------------------------------------------------------------------------------------


def a_run(**options: Any) -> ls.simulation.Simulation:
    bot = robot("puma560")
    return ls.simulate(bot, [0.3, -0.8, 0.3, 0.2, 0.6, 0.0], duration=0.5, dt=1e-3, every=10, **options)


def test_a_run_is_shown(opened: Callable[..., Viewer]):
    run = a_run()
    viewer = run.show(port=0, browser=False)
    try:
        viewer.seek(run.t[20])
        assert np.array_equal(viewer.q, run.q[20]) and worst(viewer) < 1e-14
        assert viewer.time is not None and viewer.time.time == run.t[20]
        assert f'data-t="{run.t[20]!r}"'.replace("np.float64(", "").replace(")", "") in viewer.plots.now.content  # pyright: ignore
        middle = 0.5 * (run.t[20] + run.t[21])
        viewer.seek(middle)
        assert np.abs(viewer.q - 0.5 * (run.q[20] + run.q[21])).max() < 1e-12
        viewer.seek(99.0)
        assert np.array_equal(viewer.q, run.q[-1])
        viewer.time.loop.value = False
        viewer.seek(0.45)
        viewer.play()
        until(lambda: not viewer.time.playing)  # pyright: ignore
        until(lambda: np.array_equal(viewer.q, run.q[-1]))
        assert {"energy (J)", "tau", "q"} <= set(viewer.motion.quantities)  # pyright: ignore
    finally:
        viewer.close()


def test_a_batch_is_several_robots(opened: Callable[..., Viewer]):
    bot = robot("planar3")
    run = ls.simulate(bot, np.random.default_rng(0).uniform(-1, 1, (5, 2, 3)), duration=0.1)
    with run.show(port=0, browser=False) as viewer:
        assert len(viewer.robots) == 8
        viewer.seek(0.1)
        assert np.array_equal(viewer.robots[3].q, run.q[-1, 1, 1])
    with run.show(rollouts=7, port=0, browser=False) as viewer:
        viewer.seek(0.1)
        assert len(viewer.robots) == 1 and np.array_equal(viewer.q, run.q[-1, 3, 1])
    with pytest.raises(ls.ArgumentError, match="rollouts is 10, expected indices of rollouts from 0 to 9"):
        run.show(rollouts=10)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["puma560", "planar3", "stanford", "floating"])
def test_rollouts_are_side_by_side(name: str):
    """No two of eight robots overlap at any record, and the plots and poses are those of the rollouts."""
    random = np.random.default_rng(0)
    bot = robot("tree4").with_base("floating").with_gravity((0, 0, 0)) if name == "floating" else robot(name)
    run = ls.simulate(bot, np.stack([bot.random(random) for _ in range(8)]), duration=0.2, every=50)
    shift = np.array([0.3, -0.2, 0.1])
    with run.show(port=0, browser=False, placement=shift) as viewer:
        assert np.array_equal(viewer.first.placement[:3, 3], shift)
        for t in run.t[::2] if name != "floating" else run.t[:1]:
            viewer.seek(t)
            boxes = [shown.bounds() for shown in viewer.robots]
            for k, (low, high) in enumerate(boxes):
                for other_low, other_high in boxes[k + 1 :]:
                    assert ((high <= other_low) | (other_high <= low)).any()
        offsets = np.array([shown.placement[:3, 3] for shown in viewer.robots]) - shift
        assert np.abs(offsets[:, 2]).max() == 0.0 or name == "planar3"
        assert np.ptp(offsets, axis=0).max() < 30.0 * viewer.first.extent
        for k, shown in enumerate(viewer.robots):
            assert np.array_equal(shown.q, run.q[list(run.t).index(t), k])


def test_a_run_that_left_the_finite_numbers_is_cut(opened: Callable[..., Viewer]):
    q = np.linspace(0, 1, 30)[:, None] * np.ones(6)
    q[20:] = np.nan
    with pytest.warns(ModelWarning, match=r"diverges \(NaN or inf\) at t = 20 s"):
        viewer = opened(robot("puma560"), q, np.arange(30.0))
    assert len(viewer.motion.t) == 20  # pyright: ignore


def test_moments_between_samples_turn_at_constant_rate():
    bot = every_kind()
    a, b = (bot.random(np.random.default_rng(k)) for k in (0, 1))

    class Shown:
        robot = bot

    motion = playback.Motion(np.array([1.0, 3.0]), [(Shown(), np.stack([a, b]))])  # pyright: ignore
    found = motion.q_at(0, 1.5)
    assert np.abs(bot.difference(a, found) - 0.25 * bot.difference(a, b)).max() < 1e-10
    assert [motion.index(t) for t in (-9.0, 1.9, 2.1, 99.0)] == [0, 0, 1, 1]


def test_the_mark_follows_and_a_click_seeks(opened: Callable[..., Viewer]):
    run = a_run()
    viewer = opened(run.robot, run.q, run.t, tau=run.tau)
    viewer.request_time(0.2)
    until(lambda: viewer.time.time == 0.2)  # pyright: ignore
    assert 'data-t="0.2"' in viewer.plots.now.content  # pyright: ignore
    until(lambda: np.abs(viewer.controls.sliders.q - viewer.q).max() < 1e-12)


def test_a_time_from_the_slider_is_not_written_back(opened: Callable[..., Viewer]):
    """While a user drags the slider, an older value of it would throw it back; a play that goes on would take it."""
    import asyncio
    from types import SimpleNamespace

    run = a_run()
    viewer = opened(run.robot, run.q, run.t, tau=run.tau)
    controls = viewer.time
    assert controls is not None and viewer.plots is not None
    assert f'data-slider="{controls.slider._impl.uuid}"' in viewer.plots.now.content
    with viewer.scene.lock:
        controls.slider.value = 0.3
        asyncio.run(controls._slid(SimpleNamespace(client=object())))
        controls.slider.value = 0.4  # dragged on before 0.3 is drawn
    until(lambda: controls.time == 0.3)
    assert controls.slider.value == 0.4 and not controls.playing
    viewer.request_time(0.1)
    until(lambda: controls.time == 0.1)
    assert controls.slider.value == 0.1


def test_plots_choose_quantity_and_joint(opened: Callable[..., Viewer]):
    run = a_run(torque=[1.0, 2, 3, 4, 5, 6])
    viewer = opened(run.robot, run.q, run.t, tau=run.tau, quantities={"speed": np.ones(len(run.t))})
    panel = viewer.plots
    assert panel is not None and panel.quantity.value == "joint torques"
    assert [s["label"] for s in panel.chart.series[1:]] == [f"joint{k} (N m)" for k in range(1, 7)]
    panel.quantity.value = "speed"
    assert [s["label"] for s in panel.chart.series[1:]] == ["speed"]
    panel.quantity.value = "joint positions"
    panel.joint.value = "joint2 (rad)"
    assert np.array_equal(panel.chart.data[1], run.q[:, 1])


def test_long_curves_keep_their_peaks():
    t = np.linspace(0, 1, 100_000)
    values = np.random.default_rng(0).normal(size=(len(t), 3))
    values[54321, 1] = 99.0
    few, kept = plot_panel.thinned(t, values)
    assert len(few) <= plot_panel.MOST_POINTS and (np.diff(few) > 0).all() and kept.shape == (len(few), 3)
    assert np.array_equal(kept.max(axis=0), values.max(axis=0)) and np.array_equal(kept.min(axis=0), values.min(axis=0))
    assert plot_panel.thinned(t[:50], values[:50])[0] is not few


# ---- layers --------------------------------------------------------------------------------------------------


def test_ellipsoids():
    radii, axes = inertia_ellipsoid(2.0, np.diag([0.4 * (4 + 9), 0.4 * (1 + 9), 0.4 * (1 + 4)]))
    assert np.abs(np.sort(radii) - [1, 2, 3]).max() < 1e-12 and abs(np.linalg.det(axes) - 1) < 1e-12
    assert inertia_ellipsoid(0.0, np.eye(3))[0].max() == 0.0
    jacobian = np.random.default_rng(0).normal(size=(3, 6))
    radii, axes = velocity_ellipsoid(jacobian)
    inside = np.linalg.norm((axes.T @ jacobian) / radii[:, None], axis=0)  # unit rates end inside or on it
    assert (inside <= 1 + 1e-12).all()
    assert np.abs(axes @ np.diag(radii**2) @ axes.T - jacobian @ jacobian.T).max() < 1e-12
    assert velocity_ellipsoid(np.ones((3, 1)))[0].tolist()[1:] == [0.0, 0.0]


def test_the_arc_turns_by_the_right_hand():
    arc = arc_arrow()
    angles = np.unwrap(np.arctan2(arc.vertices[:40, 1], arc.vertices[:40, 0]))
    assert np.abs(np.linalg.norm(arc.vertices[:, :2], axis=1)).max() < 1.3 and angles[0] == pytest.approx(0.0, abs=0.1)


def test_layers_come_and_go(opened: Callable[..., Viewer]):
    bot = robot("stanford")
    viewer = opened(bot, bot.neutral(), f_ext={bot.frame_names[-1]: [0, 0, 1, 0, 5, 0]}, tau=np.arange(6.0))
    names = viewer.scene.server.scene._handle_from_node_name
    assert "/robots/stanford/layers/forces" in names and "forces" in viewer.overlays.on
    for layer in LAYERS:
        viewer.show_layer(layer)
    assert viewer.first.opacity < 1.0
    assert {f"/robots/stanford/layers/{what}" for what in ("torques", "torques slides", "manipulability")} <= set(names)
    for layer in LAYERS:
        viewer.show_layer(layer, False)
    assert "/robots/stanford/layers/torques" not in names
    assert not names["/robots/stanford/links/link1/axis"].visible
    with pytest.raises(ls.ArgumentError, match=r"layer is 'inertias' \(did you mean 'inertia'\?\)"):
        viewer.show_layer("inertias")


def test_external_forces_are_drawn_in_the_world(opened: Callable[..., Viewer]):
    bot = robot("puma560")
    q = bot.random(np.random.default_rng(3))
    rows = np.zeros((6, 6))
    rows[3] = [0, 0, 0, 1, 2, 3]
    viewer = opened(bot, q, f_ext=rows)
    arrow = viewer.scene.server.scene.get_handle_by_name("/robots/puma560/layers/forces").points[0].astype(float)
    pose = bot.pose(q, bot.link_names[3])
    way = (arrow[1] - arrow[0]) / np.linalg.norm(arrow[1] - arrow[0])
    assert np.abs(arrow[0] - pose[:3, 3]).max() < 1e-6
    assert np.abs(way - pose[:3, :3] @ np.array([1, 2, 3]) / np.sqrt(14)).max() < 1e-5


# ---- live simulation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["puma560", "floating"])
def test_a_live_simulation_goes_to_its_target(name: str):
    bot = robot("puma560") if name == "puma560" else robot("tree4").with_base("floating").with_gravity((0, 0, 0))
    start = bot.neutral()
    target = start.copy()
    target[-3:] = 0.3
    simulation = live.LiveSimulation(bot, start, live.tracking(bot))
    simulation.set_target(target)
    for _ in range(60):
        simulation.advance(0.05)
    assert simulation.t == pytest.approx(3.0) and np.abs(simulation.q[-3:] - 0.3).max() < 1e-3


def test_a_law_of_ones_own_is_asked_for_each_target():
    bot, asked = robot("planar3"), []

    def law(target: np.ndarray) -> Any:
        asked.append(target.copy())
        return lambda t, q, qd: 50.0 * (target - q) - 10.0 * qd + bot.gravity_forces(q) + 0.0 * t

    simulation = live.LiveSimulation(bot, np.zeros(3), law)
    simulation.set_target([0.1, 0.2, 0.3])
    for _ in range(3):
        simulation.advance(0.05)
    assert len(asked) == 3 and np.array_equal(asked[0], [0.1, 0.2, 0.3])
    assert simulation.q[2] > 0.0
    with pytest.raises(ls.ArgumentError, match="law is 3, expected a function"):
        live.LiveSimulation(bot, np.zeros(3), 3)  # pyright: ignore


def panda(mimic: str = "free") -> ls.Robot:
    oracles = pytest.importorskip("oracles", reason="the Panda comes with example-robot-data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(oracles.FILES["panda_description/urdf/panda.urdf"], mimic=mimic)


def limits_of(bot: ls.Robot) -> tuple[np.ndarray, np.ndarray]:
    joints = {link.joint.name: link.joint.limits for link in bot.model.links}
    return tuple(np.array([getattr(joints[n], side) for n in bot.joint_names]) for side in ("lower", "upper"))  # pyright: ignore


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("driven", [False, True])
@pytest.mark.parametrize("mimic", ["free", "couple"])
@pytest.mark.slow
def test_a_panda_stays_finite_and_within_its_limits_for_a_minute(mimic: str, driven: bool):
    """From the neutral configuration, where joint 4 is outside its limits; no step warns."""
    bot = panda(mimic)
    lower, upper = limits_of(bot)
    simulation = live.LiveSimulation(bot, bot.neutral(), live.tracking(bot) if driven else None)
    if driven:
        simulation.set_target(0.5 * (lower + upper))
    fastest = 0.0
    while simulation.t < 60.0:
        simulation.advance(live.LONGEST)
        fastest = max(fastest, float(np.abs(simulation.qd).max()))
        assert ((lower <= simulation.q) & (simulation.q <= upper)).all()
    assert 1.0 < fastest < 100.0 and np.abs(simulation.qd).max() < 0.1  # it falls, and comes to rest
    if driven:
        assert np.abs(simulation.q - simulation.target).max() < 1e-6


@pytest.mark.filterwarnings("error")
def test_without_stops_and_damping_the_panda_diverges():
    bot = panda()
    simulation = live.LiveSimulation(bot, bot.neutral(), stops=False, damping=False)
    with pytest.raises(ls.LinksweepError, match=r"diverged at t = .* \(joint panda_"):
        while simulation.t < 60.0:
            simulation.advance(live.LONGEST)


@pytest.mark.filterwarnings("error")
def test_singular_configurations_are_named_in_the_page_without_warnings(opened: Callable[..., Viewer]):
    """A point mass on two links: their joints are singular where these are in line, and nowhere else."""
    point = Inertial(1.0, (0.4, 0.0, 0.0), ((0.0,) * 3,) * 3)
    parts = [
        Part("l1", "base", Joint("j1", axis=(0.0, 1.0, 0.0)), Inertial(0.0, (0.0,) * 3, ((0.0,) * 3,) * 3)),
        Part("l2", "l1", Joint("j2", axis=(0.0, 1.0, 0.0), placement=Placement(position=(0.5, 0.0, 0.0))), point),
    ]
    bot = ls.Robot(assemble("point", parts, base="base"))
    assert bot.can_be_singular
    simulation = live.LiveSimulation(bot, [0.0, 1.0])
    simulation.advance(0.02)
    assert np.isfinite(simulation.q).all() and not simulation.remark
    simulation.set_state([0.0, 0.0], [0.0, 0.0], 0.0)
    simulation.advance(0.002)
    assert "joint j1 is singular" in simulation.remark
    viewer = opened(bot, [0.0, 1.0])
    viewer.start()
    with viewer.scene.lock:
        viewer.live.set_state([0.0, 0.0], [0.0, 0.0], 0.0)  # pyright: ignore
    until(lambda: "joint j1 is singular" in viewer.controls._note.content)


@pytest.mark.cases(1)
@pytest.mark.parametrize("damping", [1e4, 0.3, 0.0])
def test_damping_never_makes_the_live_simulation_unstable(damping: float):
    """Also where the file has more of it than a step of the simulation can take."""
    bot = robot("puma560").with_dissipation(damping=damping, friction=5.0)
    simulation = live.LiveSimulation(bot, bot.neutral())
    assert (simulation.robot.damping > 0.0).all() and not simulation.robot.friction.any()
    for _ in range(100):
        simulation.advance(live.LONGEST)
    assert np.abs(simulation.qd).max() < 20.0


@pytest.mark.slow
def test_stops_and_damping_can_be_turned_off_during_a_run(opened: Callable[..., Viewer]):
    viewer = opened(panda())
    controls = viewer.controls
    controls.drive.value = "unactuated"
    viewer.start()
    assert viewer.live is not None and viewer.live.stops == "inelastic" and viewer.live.damping
    controls.stops.value = False
    until(lambda: viewer.live.stops is None)  # pyright: ignore
    controls.damping.value = False
    until(lambda: not viewer.live.damping)  # pyright: ignore
    assert viewer.running and viewer.live.t > 0.0
    viewer.stop()
    free = opened(robot("planar3"))  # has no limits
    assert free.controls.stops.disabled and not free.controls.stops.value
    free.start()
    assert free.live.stops is None  # pyright: ignore


def test_simulating_in_the_viewer(opened: Callable[..., Viewer]):
    viewer = opened(robot("planar3"), [0.1, 0.2, 0.3])
    viewer.start()
    target = np.array([0.5, -0.2, 0.1])
    viewer.request_pose(target)
    until(lambda: np.abs(viewer.q - target).max() < 1e-2)
    viewer.stop()
    assert not viewer.running and worst(viewer) < 1e-13


def test_dragging_the_tip(opened: Callable[..., Viewer]):
    bot = robot("puma560")
    viewer = opened(bot, [0.3, -0.8, 0.3, 0.2, 0.6, 0.0])
    pose = bot.pose(viewer.q, "tool")
    pose[:3, 3] += [0.05, -0.03, 0.02]
    viewer.controls._show_handle(True)
    viewer.request_target(pose)
    until(lambda: np.abs(bot.pose(viewer.q, "tool") - pose).max() < 1e-5)


def handle_miss(viewer: Viewer) -> float:
    """How far the drag handle is from the robot's tool."""
    from scipy.spatial.transform import Rotation

    handle = viewer.controls._handle
    with viewer.scene.lock:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = Rotation.from_quat(np.roll(handle.wxyz, -1)).as_matrix(), handle.position
        return float(np.abs(pose - viewer.first.robot.pose(viewer.q, viewer.overlays.frame)).max())


def test_the_handle_is_at_the_tool(opened: Callable[..., Viewer]):
    """Enabled during a run, while the run moves, with the sliders, and at another frame, but not while dragged."""
    import asyncio
    from types import SimpleNamespace

    bot = robot("puma560")
    viewer = opened(bot, [0.3, -0.8, 0.3, 0.2, 0.6, 0.0])
    controls = viewer.controls
    controls.drive.value = "unactuated"
    viewer.start()
    start = bot.pose(viewer.q, "tool")
    until(lambda: viewer.live.t > 0.05)  # pyright: ignore
    controls.drag.value = True
    until(lambda: controls._handle is not None)
    for _ in range(5):
        time.sleep(0.02)
        assert handle_miss(viewer) < 1e-12
    until(lambda: np.abs(bot.pose(viewer.q, "tool") - start).max() > 0.05)
    assert handle_miss(viewer) < 1e-12
    viewer.stop()
    for q in (np.zeros(6), np.full(6, 0.4)):
        viewer.request_pose(q)
        until(lambda q=q: np.array_equal(viewer.q, q))
        assert handle_miss(viewer) < 1e-12
    controls.frame.value = "link3"
    until(lambda: viewer.overlays.frame == "link3" and handle_miss(viewer) < 1e-12)
    event = SimpleNamespace(phase="start")
    asyncio.run(controls._dragged(event))
    held = np.array(controls._handle.position)
    viewer.request_pose(np.full(6, 0.2))
    until(lambda: np.array_equal(viewer.q, np.full(6, 0.2)))
    assert np.array_equal(controls._handle.position, held)
    event.phase = "end"
    asyncio.run(controls._dragged(event))
    until(lambda: handle_miss(viewer) < 1e-12)


def test_a_law_that_fails_stops_and_is_said(opened: Callable[..., Viewer]):
    def law(target: np.ndarray) -> Any:
        raise ValueError("no law today")

    viewer = opened(robot("planar3"), [0.1, 0.2, 0.3], law=lambda target: None)
    viewer.start()
    viewer.live.law = law  # pyright: ignore
    until(lambda: not viewer.running)
    until(lambda: "no law today" in viewer.controls._note.content)


# ---- recordings ----------------------------------------------------------------------------------------------


def messages_of(path: Path) -> dict[str, Any]:
    """What a recording holds, by viser's own format."""
    import msgspec  # pyright: ignore[reportMissingImports]
    import zstandard  # pyright: ignore[reportMissingImports]

    data = base64.b64decode(re.search(r'__VISER_EMBED_DATA__="([^"]+)"', path.read_text())[1])  # pyright: ignore
    inner = zstandard.ZstdDecompressor().decompressobj().decompress(data[8:])
    return msgspec.msgpack.decode(inner[8 : 8 + int.from_bytes(inner[:8], "little")])


def test_a_recording_is_one_file_with_the_motion(tmp_path: Path, opened: Callable[..., Viewer]):
    run = a_run()
    viewer = opened(run.robot, run.q, run.t)
    viewer.seek(0.3)
    viewer.record(tmp_path / "run.html", fps=20)
    assert np.array_equal(viewer.q, run.q[30])  # the page is back where it was
    text = (tmp_path / "run.html").read_text()
    assert not re.search(r'(src|href)="https?:', text) and "<title>linksweep</title>" in text
    plotted = json.loads(re.search(r'id="linksweep-data">(.*?)</script>', text)[1])  # pyright: ignore
    assert [each["title"] for each in plotted] == ["joint positions"] and plotted[0]["label"] == "angle (rad)"
    assert plotted[0]["t"] == run.t.tolist() and len(plotted[0]["curves"]) == 6
    held = messages_of(tmp_path / "run.html")
    assert held["durationSeconds"] == pytest.approx(0.5)
    places: dict[str, list[Any]] = {}
    for moment, message in held["messages"]:
        if message["type"] == "SetPositionMessage":
            places.setdefault(message["name"], []).append((moment, message["position"]))
    for link in run.robot.link_names[2:]:
        moment, position = places[viewer.first.node(link)][-1]
        assert moment == pytest.approx(0.5)
        assert np.abs(position - run.robot.pose(run.q[-1], link)[:3, 3]).max() < 1e-14


def test_a_still_scene_is_recorded_too(tmp_path: Path, opened: Callable[..., Viewer]):
    viewer = opened(robot("puma560"))
    viewer.record(tmp_path / "still.html")
    held = messages_of(tmp_path / "still.html")
    assert held["durationSeconds"] == 0.0 and any(m["type"] == "MeshMessage" for _, m in held["messages"])


def test_files_that_cannot_be(tmp_path: Path, opened: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch):
    viewer = opened(robot("planar3"))
    for call, said in (
        (lambda: viewer.record(tmp_path / "a.mp4"), "expected .html"),
        (lambda: viewer.record(tmp_path / "a.html", fps=0), "fps is 0"),
        (lambda: viewer.screenshot(tmp_path / "a.jpg"), "expected .png"),
        (lambda: viewer.screenshot(tmp_path / "a.png", width=3), "width is 3, expected an integer"),
        (lambda: viewer.seek(0.3), "no motion to play"),
        (lambda: viewer.play(), "no motion to play"),
    ):
        with pytest.raises(ls.ArgumentError, match=said):
            call()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ls.BackendError, match="needs a browser, and none is open or installed"):
        viewer.screenshot(tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


# ---- the server ----------------------------------------------------------------------------------------------


def listens_on(port: int) -> list[str]:
    """The addresses on which this machine listens at a port, from the system's own table."""
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        address, number = line.split()[1].split(":")
        if int(number, 16) == port and line.split()[3] == "0A":
            found.append(socket.inet_ntoa(bytes.fromhex(address)[::-1]))
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the table of sockets is read from /proc")
def test_it_listens_on_this_machine_alone_unless_told(opened: Callable[..., Viewer]):
    viewer = opened(robot("planar3"))
    assert viewer.url.startswith("http://127.0.0.1:") and listens_on(viewer.scene.server.get_port()) == ["127.0.0.1"]
    wide = opened(robot("planar3"), host="0.0.0.0")
    assert listens_on(wide.scene.server.get_port()) == ["0.0.0.0"]


def test_it_cannot_be_shared_with_the_world(opened: Callable[..., Viewer]):
    assert opened(robot("planar3")).scene.server.request_share_url() is None


def test_addresses_that_cannot_be(capsys: pytest.CaptureFixture[str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ls.ArgumentError, match=r"cannot listen on host '127.0.0.1', port .* free port"):
            show(robot("planar3"), port=taken.getsockname()[1], browser=False)
    for options, said in (
        ({"port": 70000}, "port is 70000"),
        ({"port": "8080"}, "port is '8080'"),
        ({"host": "no such host.invalid"}, "cannot listen"),
        ({"host": "203.0.113.7"}, "cannot listen"),
        ({"host": ""}, "host is ''"),
    ):
        with pytest.raises(ls.ArgumentError, match=said):
            show(robot("planar3"), browser=False, **options)  # pyright: ignore
    assert capsys.readouterr().out == ""


def test_directions(opened: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch):
    from linksweep.viewer.server import directions

    viewer = opened(robot("planar3"))
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert directions(viewer.scene.server) == f"Viewer: {viewer.url}"
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 5000 192.0.2.9 22")
    port = viewer.scene.server.get_port()
    assert f"ssh -L {port}:127.0.0.1:{port} 192.0.2.9" in directions(viewer.scene.server)


def test_nothing_is_printed_and_closing_twice_is_once(capsys: pytest.CaptureFixture[str]):
    viewer = show(robot("planar3"), port=0, browser=False)
    assert viewer.url in viewer._repr_html_() and "planar3" in repr(viewer)
    viewer.close()
    viewer.close()
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_script_ends_although_nobody_closed_the_viewer():
    code = "import linksweep as ls; ls.robots.puma560().show(port=0, browser=False); print('end')"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "end", "")


def test_without_viser_one_sentence_says_what_to_install():
    code = (
        "import sys; sys.modules['viser'] = None\nimport linksweep as ls\n"
        "try: ls.robots.puma560().show()\nexcept ls.BackendError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "The viewer needs viser, which is not installed: pip install 'linksweep[viewer]'."


# ---- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"q": [0.0] * 5}, r"q of puma560 has shape \(5,\), expected \(6,\)"),
        ({"q": [np.nan] * 6}, "expected finite numbers"),
        ({"q": np.zeros((4, 6))}, r"q has shape \(4, 6\) without times"),
        ({"q": np.zeros((4, 6)), "t": [0, 1, 2]}, r"expected \(3, 6\)"),
        ({"q": np.zeros((3, 6)), "t": [0, 2, 1]}, "increasing order"),
        ({"q": np.zeros((1, 6)), "t": [0]}, "two or more"),
        ({"q": np.full((3, 6), np.inf), "t": [0, 1, 2]}, "finite"),
        ({"q": np.zeros((3, 6)), "t": [0, 1, 2], "tau": np.zeros((4, 6))}, "tau has shape"),
        ({"frame": "toool"}, r"has no frame 'toool' \(did you mean 'tool'\?\)"),
        ({"f_ext": {"nowhere": [0.0] * 6}}, "has no frame 'nowhere'"),
        ({"f_ext": np.zeros((2, 6))}, r"expected \(..., 6, 6\)"),
        ({"f_ext": {"tool": [0.0] * 3}}, r"expected \(..., 6\)"),
        ({"placement": np.ones((4, 4))}, "expected a rigid motion"),
        ({"others": [("x",)]}, "expected a Robot"),
        ({"visuals": "nowhere.urdf"}, "there is no such file"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(arguments: Any, said: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        with pytest.raises(ls.LinksweepError, match=said) as error:
            show(robot("puma560"), port=0, browser=False, **arguments)
    assert "\n" not in str(error.value)


def test_names_are_no_markup_and_hide_nothing(opened: Callable[..., Viewer]):
    """Links called as layers are, names with slashes, and names that are HTML."""
    names = ("torques", "layers/forces", "<img src=x onerror=alert(1)>")
    parts = [Part(n, b, Joint(n + " joint"), BODY) for n, b in zip(names, ("base", *names), strict=False)]
    bot = ls.Robot(assemble("<b>bold</b>/x", parts, base="base"))
    viewer = opened(bot, np.zeros((3, 3)) + np.arange(3.0)[:, None], np.arange(3.0), f_ext={"torques": [1.0] * 6})
    for layer in LAYERS:
        viewer.show_layer(layer)
    viewer.seek(1.0)
    assert worst(viewer) < 1e-14
    viewer.controls.notify("<script>")
    assert "<script>" not in viewer.controls._note.content
    assert not any("<" in series["label"] for series in viewer.plots.chart.series)  # pyright: ignore


def test_what_is_no_robot():
    with pytest.raises(ls.ArgumentError, match="the viewer got 3, expected a Robot"):
        show(3)
    with Scene(port=0) as scene:
        for call, said in (
            (lambda: scene.add(3), "expected a Robot"),
            (lambda: scene.arrows("a", np.zeros((2, 2)), [0, 0, 1]), r"points has shape .*, expected \(n, 3\)"),
            (lambda: scene.arrows("a", [0, 0, 0], [0, 0, np.nan]), "expected finite numbers"),
            (lambda: scene.cones("a", [0, 0, 0], [0, 0, 1]), "expected one of them"),
            (lambda: scene.cones("a", [0, 0, 0], [0, 0, 1], friction=-1), "expected positive"),
            (lambda: scene.lines("a", [0, 0, 0]), "at least two"),
            (lambda: scene.solid("a", "box"), "expected a shape"),  # pyright: ignore
            (lambda: scene.solid("a", Box((1, 1, 1)), color="red"), "expected \\(red, green, blue\\)"),
        ):
            with pytest.raises(ls.ArgumentError, match=said):
                call()


# ---- the command ---------------------------------------------------------------------------------------------


def linksweep(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "linksweep", *words], capture_output=True, text=True, timeout=300, **options
    )


@pytest.mark.slow
def test_the_command_records(tmp_path: Path):
    assert linksweep("demo", "-o", "out", cwd=tmp_path).returncode == 0
    run = linksweep("view", "puma560", "-t", "out/puma560.csv", "--record", "run.html", cwd=tmp_path)
    assert (run.returncode, run.stdout.strip()) == (0, "wrote run.html"), run.stderr
    assert messages_of(tmp_path / "run.html")["durationSeconds"] == pytest.approx(4.0)
    run = linksweep("view", "stanford", "--move", "--record", "move.html", cwd=tmp_path)
    assert run.returncode == 0 and messages_of(tmp_path / "move.html")["durationSeconds"] >= 6.0
    assert linksweep("simulate", "puma560", "--duration", "0.2", "-o", "run.npz", cwd=tmp_path).returncode == 0
    run = linksweep("view", "puma560", "-t", "run.npz", "--record", "npz.html", cwd=tmp_path)
    assert run.returncode == 0 and messages_of(tmp_path / "npz.html")["durationSeconds"] == pytest.approx(0.2)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("view", "puma561"), "There is no robot"),
        (("view", "puma560", "-t", "gone.csv"), "cannot be read"),
        (("view", "puma560", "-t", "gone.csv", "--move"), "exclude each other"),
        (("view", "puma560", "--port", "99999"), "port is 99999"),
        (("view", "puma560", "--record", "a.gif"), "expected .html"),
    ],
)
def test_the_command_says_what_is_wrong(words: tuple[str, ...], said: str, tmp_path: Path):
    run = linksweep(*words, cwd=tmp_path)
    assert run.returncode == 2 and said in run.stderr and len(run.stderr.splitlines()) == 1


def test_move_plays_at_once(monkeypatch: pytest.MonkeyPatch):
    """`linksweep view ROBOT --move`, without a click."""
    from typer.testing import CliRunner

    from linksweep.cli import app

    seen: list[float] = []

    def wait(viewer: Viewer) -> None:
        assert viewer.time is not None
        until(lambda: viewer.time.time > 0.1)  # pyright: ignore
        seen.append(viewer.time.time)
        viewer.close()

    monkeypatch.setattr(Viewer, "wait", wait)
    result = CliRunner().invoke(app, ["view", "puma560", "--move", "--no-browser"])
    assert result.exit_code == 0 and len(seen) == 1, result.output


@pytest.mark.slow
def test_the_command_shows_until_it_is_ended():
    process = subprocess.Popen(
        [sys.executable, "-m", "linksweep", "view", "puma560", "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()  # pyright: ignore
        address = re.search(r"Viewer: http://127\.0\.0\.1:(\d+)(/\S+/)", line)
        assert address is not None, line
        for path, status in ((address[2], b"200"), ("/", b"403")):
            with socket.create_connection(("127.0.0.1", int(address[1])), timeout=60) as connection:
                text = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                connection.sendall(text.encode())
                assert connection.recv(15).startswith(b"HTTP/1.1 " + status)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 143


@pytest.mark.slow
def test_a_notebook_shows_the_page_below_the_cell():
    nbformat = pytest.importorskip("nbformat", reason="notebooks are run by nbclient: pip install nbclient ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="notebooks are run by nbclient: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="notebooks are run by nbclient: pip install nbclient ipykernel")
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell("import linksweep as ls\nviewer = ls.robots.planar(2).show()\nviewer"),
        nbformat.v4.new_code_cell("viewer.q = [0.5, 0.5]\nviewer.close()"),
    ]
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    (shown_page,) = book.cells[0].outputs
    assert re.search(r'<iframe src="http://127.0.0.1:\d+/[^"]+/"', shown_page["data"]["text/html"])
    assert book.cells[1].outputs == []
