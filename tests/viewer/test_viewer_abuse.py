"""What nobody should give the viewer: one sentence each, and the page goes on."""

from __future__ import annotations

import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError, ModelWarning

pytest.importorskip("viser", reason="the viewer is built on viser: pip install viser")

from linksweep.viewer import LAYERS, Scene, show

URDF = """<robot name="{name}">
<link name="base"><visual>{origin}<geometry>{geometry}</geometry></visual></link>
<link name="{link}"><visual>{origin}<geometry>{geometry}</geometry></visual>
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{joint}" type="{kind}"><parent link="base"/><child link="{link}"/><axis xyz="0 0 1"/>{limit}</joint>
</robot>"""
BOX = '<box size="1 1 1"/>'


def arm(
    folder: Path, geometry: str = BOX, *, name: str = "r", link: str = "l", joint: str = "j", kind: str = "continuous",
    limit: str = "", origin: str = "",
) -> ls.Robot:  # fmt: skip
    path = folder / "r.urdf"
    path.write_text(
        URDF.format(name=name, link=link, joint=joint, kind=kind, limit=limit, geometry=geometry, origin=origin)
    )
    return ls.load(path)


def shown_with_everything(robot: Any, folder: Path, *args: Any, **options: Any) -> list[str]:
    """Show, draw every layer, record; the warnings on the way. Nothing that is drawn may be infinite."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with show(robot, *args, browser=False, **options) as viewer:
            for layer in LAYERS:
                viewer.show_layer(layer)
                viewer.show_layer(layer, False)
            assert np.isfinite(viewer.first.bounds()).all()
            viewer.record(folder / "r.html")
    return [str(warning.message) for warning in said if not issubclass(warning.category, ResourceWarning)]


@pytest.mark.parametrize(
    ("geometry", "said"),
    [
        ('<box size="0 0 0"/>', ""),
        ('<sphere radius="-1"/>', ""),
        ('<cylinder radius="nan" length="1"/>', ""),
        ('<cylinder radius="1e300" length="1"/>', "extends farther than 1000 km"),
        ('<sphere radius="1e39"/>', "extends farther than 1000 km"),
        ('<mesh filename="package://nope/a.stl"/>', "1 mesh not found (package://nope/a.stl)"),
        ('<mesh filename="https://example.com/a.stl"/>', "remote files are not fetched"),
        ('<mesh filename="empty.stl"/>', "contains no triangles"),
        ('<mesh filename="point.obj" scale="0 0 0"/>', ""),
        ('<mesh filename="point.obj"/>', ""),
        ('<mesh filename="nan.obj"/>', "unreadable"),
        ('<mesh filename="index.obj"/>', "unreadable"),
    ],
)
def test_odd_shapes(geometry: str, said: str, tmp_path: Path):
    (tmp_path / "empty.stl").write_bytes(b"")
    (tmp_path / "point.obj").write_text("v 0 0 0\nv 0 0 0\nv 0 0 0\nf 1 2 3\n")
    (tmp_path / "nan.obj").write_text("v nan 0 0\nv 0 inf 0\nv 0 0 1\nf 1 2 3\n")
    (tmp_path / "index.obj").write_text("v 0 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 9\n")
    found = shown_with_everything(arm(tmp_path, geometry), tmp_path)
    assert len(found) == bool(said), found
    assert not said or said in found[0]


def test_a_shape_placed_beyond_everything(tmp_path: Path):
    (found,) = shown_with_everything(arm(tmp_path, origin='<origin xyz="1e300 0 0"/>'), tmp_path)
    assert "extends farther than 1000 km" in found


@pytest.mark.parametrize("limit", ["", '<limit lower="1" upper="1" effort="0" velocity="0"/>'])
def test_odd_limits(limit: str, tmp_path: Path):
    robot = arm(tmp_path, kind="revolute" if limit else "continuous", limit=limit)
    assert shown_with_everything(robot, tmp_path) == []


def test_names_that_are_markup(tmp_path: Path):
    script = "&lt;script&gt;alert(1)&lt;/script&gt;"
    robot = arm(tmp_path, name=script, link="&lt;b&gt;/../x", joint="[a](javascript:1)")
    assert shown_with_everything(robot, tmp_path) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"q": "abc"}, "expected real numbers"),
        ({"q": [[0.0], [1.0, 2.0]]}, "expected real numbers"),
        ({"q": np.full(6, np.nan)}, "expected finite numbers"),
        ({"q": np.zeros((0, 6)), "t": []}, "expected"),
        ({"q": np.full((5, 6), np.nan), "t": np.arange(5.0)}, "finite"),
        ({"q": np.zeros((5, 6)), "t": [0, 1, 2, 1, 3]}, "increasing order"),
        ({"q": np.zeros((5, 6)), "t": "now"}, "expected real numbers"),
        ({"q": np.zeros((5, 6)), "t": np.arange(5.0), "tau": "much"}, "expected real numbers"),
        ({"tau": np.zeros(3)}, r"expected \(6,\)"),
        ({"tau": np.full(6, np.nan)}, "expected finite numbers"),
        ({"f_ext": {"tool": [np.nan] * 6}}, "not finite"),
        ({"f_ext": {"tool": [1e200] * 6}}, "not finite"),
        ({"f_ext": {"tool": "hard"}}, "expected real numbers"),
        ({"opacity": float("nan")}, "expected a finite number from 0 to 1"),
        ({"opacity": "half"}, "expected a finite number from 0 to 1"),
    ],
)
def test_arguments_are_refused_in_a_sentence(given: dict[str, Any], said: str):
    with pytest.raises(ArgumentError, match=said):
        show(ls.robots.puma560(), browser=False, **given)


def test_a_motion_is_shown_up_to_its_first_nan(tmp_path: Path):
    q = np.zeros((6, 6))
    q[3, 2] = np.nan
    with pytest.warns(ModelWarning, match=r"diverges \(NaN or inf\) at t = 3 s"):
        viewer = show(ls.robots.puma560(), q, np.arange(6.0), tau=np.full((6, 6), np.nan), browser=False)
    with viewer:
        viewer.show_layer("torques")
        viewer.seek(2.0)
        assert viewer.motion is not None and len(viewer.motion.t) == 3


def test_a_closed_viewer_says_so(tmp_path: Path):
    viewer = show(ls.robots.puma560(), browser=False)
    viewer.close()
    viewer.close()
    for call in (
        lambda: setattr(viewer, "q", np.zeros(6)), viewer.play, viewer.start, lambda: viewer.seek(0.0),
        lambda: viewer.show_layer("com"), lambda: viewer.record(tmp_path / "a.html"),
        lambda: viewer.screenshot(tmp_path / "a.png"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match="the viewer is closed"):
            call()
    assert not list(tmp_path.iterdir())


def test_two_viewers_at_once_and_a_port_that_is_taken():
    robot = ls.robots.puma560()
    with show(robot, browser=False) as one, show(robot, browser=False) as other:
        assert one.url != other.url
        one.q = np.ones(6)
        assert (other.q == 0).all()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ArgumentError, match="cannot listen on"):
            show(robot, port=taken.getsockname()[1], browser=False)


@pytest.mark.slow
def test_a_thousand_links():
    robot = ls.robots.chain(1000)
    with Scene() as scene:
        added = scene.add(robot)
        added.q = np.full(robot.nq, 0.01)
        assert np.isfinite(added.bounds()).all()


def test_without_viser_one_sentence():
    script = (
        "import sys; sys.modules['viser'] = None\n"
        "import linksweep as ls\n"
        "try:\n    ls.robots.puma560().show()\n"
        "except ls.BackendError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert said.stdout.count("\n") == 1 and "pip install 'linksweep[viewer]'" in said.stdout
