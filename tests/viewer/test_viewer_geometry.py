"""What links look like: shapes read from files, meshes found and read, bodies drawn; never a crash for a mesh."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mjcf_files import COMPILED, FILES, compiled, mujoco, quietly

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.model.model import BASE
from linksweep.robot import conventions

trimesh: Any = pytest.importorskip("trimesh", reason="the viewer's meshes are read by trimesh: pip install viser")

from linksweep.viewer import geometry, meshes, visuals  # noqa: E402
from linksweep.viewer.visuals import read_visuals  # noqa: E402

ROBOT = """<robot name="two"><material name="blue"><color rgba="0 0 1 0.5"/></material>
<link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
  <visual><geometry><box size="1 2 3"/></geometry><material name="blue"/></visual></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
  <visual><origin xyz="0 0 0.5" rpy="0 0 1.5707963267948966"/>
    <geometry><cylinder radius="0.1" length="1"/></geometry></visual>
  <visual><geometry><sphere radius="0.2"/></geometry><material name="own"><color rgba="1 0.5 0 1"/></material></visual>
  {mesh}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><limit lower="-1" upper="1"/></joint></robot>"""


def robot_file(folder: Path, mesh: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "two.urdf"
    shape = f'<visual><geometry><mesh filename="{mesh}"/></geometry></visual>' if mesh else ""
    path.write_text(ROBOT.format(mesh=shape))
    return path


def a_mesh(path: Path, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box((0.1, 0.2, 0.3)).export(path, **options)
    return path


def loaded(path: Path) -> visuals.RobotVisuals:
    return visuals.load_visuals(ls.load(path).model, None, meshes.MeshLibrary())


# ---- where a robot came from ---------------------------------------------------------------------------------


def test_a_robot_remembers_its_file_and_is_equal_to_others_without(tmp_path: Path):
    one, other = ls.load(robot_file(tmp_path / "a")), ls.load(robot_file(tmp_path / "b"))
    assert one.model.source == str(tmp_path / "a" / "two.urdf") != other.model.source
    assert one == other and hash(one) == hash(other) and "source" not in repr(one.model)
    assert pickle.loads(pickle.dumps(one)).model.source == one.model.source


def test_edited_robots_remember_it_too(tmp_path: Path):
    robot = ls.load(robot_file(tmp_path))
    edited = [
        robot.with_gravity((0, 0, 0)), robot.with_payload("arm", 1.0), robot.with_base("floating"),
        ls.load(robot.model.source, base="floating"), robot.subchain("base", "arm"),
    ]  # fmt: skip
    assert {each.model.source for each in edited} == {robot.model.source}


def test_results_do_not_tell_where_their_maker_keeps_files(tmp_path: Path):
    robot = ls.load(robot_file(tmp_path))
    ls.simulate(robot, [0.1], duration=0.01).to_npz(tmp_path / "run.npz")
    assert ls.simulation.load(tmp_path / "run.npz").robot.model.source == ""
    assert str(tmp_path).encode() not in (tmp_path / "run.npz").read_bytes()


# ---- URDF ----------------------------------------------------------------------------------------------------


def test_urdf_shapes(tmp_path: Path):
    box, cylinder, sphere = read_visuals(robot_file(tmp_path))
    assert box.frame == "base" and box.shape == geometry.Box((1.0, 2.0, 3.0)) and box.color == (0.0, 0.0, 1.0, 0.5)
    assert cylinder.shape == geometry.Cylinder(0.1, 1.0) and cylinder.color is None
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert np.abs(cylinder.at - geometry.rigid([0, 0, 0.5], turn)).max() < 1e-15
    assert sphere.frame == "arm" and sphere.color == (1.0, 0.5, 0.0, 1.0)


def test_collision_shapes_stand_in_where_there_are_no_visual_ones(tmp_path: Path):
    path = robot_file(tmp_path)
    path.write_text(path.read_text().replace("visual>", "collision>"))
    assert len(read_visuals(path)) == 3


@pytest.mark.parametrize(
    "shape",
    [
        '<box size="1 2"/>', '<box size="1 nan 3"/>', '<box size="-1 2 3"/>', "<box/>", '<sphere radius="x"/>',
        '<sphere radius="0"/>', '<cylinder radius="1"/>', "<mesh/>", '<mesh filename="a.stl" scale="0 0 0"/>',
        "<cone/>",
    ],
)  # fmt: skip
def test_a_shape_that_is_none_is_left_out(shape: str, tmp_path: Path):
    path = robot_file(tmp_path)
    path.write_text(path.read_text().replace('<sphere radius="0.2"/>', shape))
    assert [type(visual.shape).__name__ for visual in read_visuals(path)] == ["Box", "Cylinder"]


@pytest.mark.slow
def test_every_link_of_every_example_has_shapes_of_known_frames():
    """All URDFs of example-robot-data: what is read is finite, and names frames that the robot has."""
    from oracles import FILES as EXAMPLES
    from oracles import READ

    seen = 0
    for name in READ:
        path = Path(EXAMPLES[name])
        found = read_visuals(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            frames = set(ls.load(path, base="floating").frame_names)
        assert all(visual.frame in frames and np.isfinite(visual.at).all() for visual in found)
        seen += len(found)
    assert seen > 1000


# ---- MJCF, against MuJoCo ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPILED)
def test_mjcf_shapes_stand_where_mujoco_has_them(name: str):
    robot, model = quietly(name), compiled(name)
    data = mujoco.MjData(model)
    q = robot.random(np.random.default_rng(0))
    data.qpos[:] = conventions.to_mujoco(robot, model, q=q)
    mujoco.mj_kinematics(model, data)
    found = read_visuals(FILES[name])
    theirs = [(p, r.reshape(3, 3)) for p, r in zip(data.geom_xpos, data.geom_xmat, strict=True)]
    for visual in found:
        pose = robot.pose(q, visual.frame) @ visual.at
        miss = min(np.abs(p - pose[:3, 3]).max() + np.abs(r - pose[:3, :3]).max() for p, r in theirs)
        assert miss < 1e-10 * max(1.0, np.abs(pose[:3, 3]).max()), visual
    drawn = {int(g) for g in model.geom_type} - {mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD}
    assert bool(found) == bool(drawn)


# ---- finding meshes ------------------------------------------------------------------------------------------


def test_a_package_is_found_above_the_description(tmp_path: Path):
    mesh = a_mesh(tmp_path / "my_robot" / "meshes" / "a b.stl")
    urdf = robot_file(tmp_path / "my_robot" / "urdf" / "deep")
    for name in (
        "package://my_robot/meshes/a b.stl", "package://my_robot/meshes/a%20b.stl", "model://my_robot/meshes/a b.stl",
        "package:///my_robot/meshes/a b.stl", "../../meshes/a b.stl", "..\\..\\meshes\\a b.stl", f"file://{mesh}",
        str(mesh),
        "package://renamed_since/meshes/a b.stl",
    ):  # fmt: skip
        found = meshes.find_mesh(name, urdf)
        assert found is not None and found.resolve() == mesh, name


def test_a_package_is_found_by_the_environment_and_by_its_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    urdf = robot_file(tmp_path / "here")
    ros, ament, checkout = tmp_path / "ros", tmp_path / "ament", tmp_path / "checkout-1.2"
    one = a_mesh(ros / "one" / "m.stl")
    two = a_mesh(ament / "share" / "two" / "m.stl")
    three = a_mesh(checkout / "m.stl")
    (checkout / "package.xml").write_text("<package><name> three </name></package>")
    monkeypatch.setenv("ROS_PACKAGE_PATH", os.pathsep.join([str(tmp_path / "nowhere"), str(ros), str(checkout)]))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(ament))
    assert meshes.find_mesh("package://one/m.stl", urdf) == one
    assert meshes.find_mesh("package://two/m.stl", urdf) == two
    assert meshes.find_mesh("package://three/m.stl", urdf) == three
    assert meshes.find_mesh("package://one/m.stl", None) == one


@pytest.mark.parametrize(
    "name",
    [
        "",
        "package://",
        "package://a",
        "https://example.org/a.stl",
        "a\0b.stl",
        "/",
        "..",
        "x" * 5000,
        "file://",
        "a.stl",
    ],
)
def test_what_is_not_there_is_not_found(name: str, tmp_path: Path):
    assert meshes.find_mesh(name, robot_file(tmp_path)) is None


def test_missing_meshes_are_said_once_and_drawn_as_bodies(tmp_path: Path):
    path = robot_file(tmp_path, "package://gone/arm.stl")
    with pytest.warns(
        ModelWarning, match=r"two: 1 mesh not found \(package://gone/arm.stl\).*ROS_PACKAGE_PATH"
    ) as said:
        found = loaded(path)
    assert len(said) == 1
    assert found.incomplete == {"arm"} and found.frames == {"base"}


def test_a_file_that_has_gone_leaves_a_drawn_robot(tmp_path: Path):
    path = robot_file(tmp_path)
    robot = ls.load(path)
    path.unlink()
    assert visuals.load_visuals(robot.model, None, meshes.MeshLibrary()).surfaces == []
    with pytest.raises(ls.DescriptionError, match="there is no such file"):
        visuals.load_visuals(robot.model, path, meshes.MeshLibrary())


# ---- reading meshes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["stl", "obj", "ply", "glb", "off"])
def test_meshes_are_read_and_scaled(ending: str, tmp_path: Path):
    found = meshes.read_mesh(a_mesh(tmp_path / f"m.{ending}"), (2.0, 1.0, 10.0))
    corners = np.concatenate([surface.vertices for surface in found])
    assert np.abs(np.ptp(corners, axis=0) - [0.2, 0.2, 3.0]).max() < 1e-6
    assert sum(len(surface.faces) for surface in found) == 12


def test_a_mirrored_mesh_is_not_inside_out(tmp_path: Path):
    (surface,) = meshes.read_mesh(a_mesh(tmp_path / "m.stl"), (-1.0, 1.0, 1.0))
    assert trimesh.Trimesh(surface.vertices, surface.faces).volume == pytest.approx(0.006, rel=1e-6)


COLLADA = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="centimeter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
<library_effects><effect id="red-fx"><profile_COMMON><technique sid="common"><phong>
  <diffuse><color>0.8 0.2 0 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="red"><instance_effect url="#red-fx"/></material></library_materials>
<library_geometries><geometry id="tri"><mesh>
  <source id="p"><float_array id="pa" count="9">0 0 0 100 0 0 0 200 0</float_array><technique_common>
    <accessor source="#pa" count="3" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
    <param name="Z" type="float"/></accessor></technique_common></source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <triangles material="m" count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><translate>0 0 300</translate><instance_geometry url="#tri">
  <bind_material><technique_common><instance_material symbol="m" target="#red"/></technique_common></bind_material>
  </instance_geometry></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_collada_has_colours_units_and_places(tmp_path: Path):
    pytest.importorskip("collada", reason="COLLADA is read by pycollada")
    (tmp_path / "m.dae").write_text(COLLADA)
    (surface,) = meshes.read_mesh(tmp_path / "m.dae")
    assert surface.color == pytest.approx((0.8, 0.2, 0.0, 1.0), abs=0.01)
    corners = {tuple(corner) for corner in np.round(surface.vertices.astype(float), 6)}
    assert corners == {(0.0, 0.0, 3.0), (1.0, 0.0, 3.0), (0.0, 2.0, 3.0)}


def test_textures_stay(tmp_path: Path):
    from PIL import Image

    box = trimesh.creation.box((1, 1, 1))
    material = trimesh.visual.material.SimpleMaterial(image=Image.new("RGB", (4, 4), (255, 0, 0)))
    box.visual = trimesh.visual.TextureVisuals(uv=np.zeros((len(box.vertices), 2)), material=material)
    box.export(tmp_path / "m.obj")
    (surface,) = meshes.read_mesh(tmp_path / "m.obj", (1.0, 2.0, 1.0))
    assert surface.glb is not None and surface.glb[:4] == b"glTF"
    assert np.abs(np.ptp(surface.vertices, axis=0) - [1, 2, 1]).max() < 1e-6


def test_a_broken_mesh_is_one_sentence_and_a_body(tmp_path: Path):
    (tmp_path / "bad.stl").write_bytes(b"\1\2\3" * 100)
    with pytest.warns(ModelWarning, match=r"two: 1 mesh unreadable \(bad.stl \(.*drawn as simple bodies"):
        assert loaded(robot_file(tmp_path, "bad.stl")).incomplete == {"arm"}


BAD = {
    "empty.stl": b"",
    "short.stl": b"\0" * 84 + b"\1",
    "claims.stl": b"\0" * 80 + (2**31).to_bytes(4, "little") + b"\0" * 500,
    "no_faces.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\n",
    "nan.obj": b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "far.obj": b"v 1e30 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "outside.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
    "text.dae": b"hello",
    "entities.dae": b'<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><COLLADA>&d;</COLLADA>',
    "root.dae": b'<?xml version="1.0"?><robot/>',
    "unknown.xyzzy": b"abc",
    "noending": b"abc",
    "zip.3mf": b"PK\3\4nonsense",
    "json.gltf": b'{"asset": {"version": "2.0"}, "buffers": [{"uri": "../../../../etc/passwd", "byteLength": 5}]}',
}


@pytest.mark.parametrize("name", BAD)
def test_bad_meshes(name: str, tmp_path: Path):
    path = tmp_path / name
    path.write_bytes(BAD[name])
    with pytest.raises(meshes.MeshError) as error:
        meshes.read_mesh(path)
    assert 3 < len(str(error.value)) < 160 and "\n" not in str(error.value)


@pytest.mark.parametrize("ending", ["stl", "obj", "dae", "ply", "glb", "off", "3mf"])
def test_damaged_meshes_are_read_or_refused(ending: str, tmp_path: Path):
    """Good files with bytes changed, cut or repeated: never anything but surfaces or a MeshError."""
    if ending in ("dae", "3mf") and ending not in trimesh.available_formats():
        pytest.skip(f"no reader of .{ending} is installed")
    random = np.random.default_rng(0)
    mesh = trimesh.creation.icosphere(1)
    good = mesh.export(file_type=ending)
    good = good.encode() if isinstance(good, str) else bytes(good)
    read = refused = 0
    for k in range(60):
        data = bytearray(good)
        for place in random.integers(0, len(data), 1 + k // 6):
            data[place] = random.integers(0, 256)
        if k % 3 == 0:
            data = data[: random.integers(0, len(data))]
        path = tmp_path / f"m{k}.{ending}"
        path.write_bytes(data)
        try:
            surfaces = meshes.read_mesh(path)
            assert all(np.isfinite(surface.vertices).all() for surface in surfaces)
            assert all(surface.faces.max() < len(surface.vertices) for surface in surfaces)
            read += 1
        except meshes.MeshError:
            refused += 1
    assert read + refused == 60 and refused > 0


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = a_mesh(tmp_path / "m.stl")
    monkeypatch.setattr(meshes, "MOST_TRIANGLES", 11)
    with pytest.raises(meshes.MeshError, match="it has 12 triangles, expected at most 11"):
        meshes.read_mesh(path)
    monkeypatch.setattr(meshes, "MOST_TRIANGLES", 12)
    monkeypatch.setattr(meshes, "MOST_IN_ALL", 20)
    library = meshes.MeshLibrary()
    assert library.read(path) is library.read(path)
    with pytest.raises(meshes.MeshError, match="together"):
        library.read(a_mesh(tmp_path / "n.stl"))
    monkeypatch.setattr(meshes, "LARGEST_FILE", 100)
    with pytest.raises(meshes.MeshError, match="the file has"):
        meshes.read_mesh(path)


# ---- surfaces and drawn bodies -------------------------------------------------------------------------------


def test_sharp_edges_double_their_vertices_and_smooth_ones_do_not():
    assert len(geometry.surface_of(geometry.Box((1, 1, 1))).vertices) == 24
    ball = trimesh.creation.icosphere(3)
    assert len(geometry.surface_of(geometry.Sphere(1.0)).vertices) == len(ball.vertices)
    tube = geometry.surface_of(geometry.Cylinder(0.5, 2.0))
    assert len(tube.vertices) == 4 * 36 + 2  # the rims twice, and the middles of the ends
    assert np.abs(np.ptp(tube.vertices, axis=0) - [1, 1, 2]).max() < 1e-6


def test_creasing_keeps_the_triangles():
    random = np.random.default_rng(0)
    vertices = random.normal(size=(200, 3))
    faces = random.integers(0, 200, (500, 3))
    found = geometry.creased(vertices, faces)
    assert np.abs(found.vertices[found.faces] - vertices[faces]).max() < 1e-5
    assert len(geometry.creased(np.zeros((0, 3)), np.zeros((0, 3))).faces) == 0


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (geometry.Box((1, 2, 3)), (1, 2, 3)), (geometry.Sphere(0.5), (1, 1, 1)), (geometry.Cylinder(0.5, 3), (1, 1, 3)),
        (geometry.Capsule(0.5, 2), (1, 1, 3)), (geometry.Ellipsoid((1, 2, 3)), (2, 4, 6)),
    ],
)  # fmt: skip
def test_primitives_stand_about_their_middle(shape: Any, size: Any):
    surface = geometry.surface_of(shape)
    assert np.abs(surface.vertices.max(axis=0) - np.array(size) / 2).max() < 0.01 * max(size)
    assert np.abs(surface.vertices.min(axis=0) + np.array(size) / 2).max() < 0.01 * max(size)


@pytest.mark.parametrize("name", ["puma560", "stanford", "six_axis"])
def test_drawn_rods_lead_from_joint_to_joint(name: str):
    """The rods of each link hang together: from its origin to the origin of every joint it carries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = ls.robots.model(name)
    named = geometry.link_frames(model)
    _, size = visuals.size_of(model)
    for index in range(-1, len(model.links)):
        ends = [np.zeros(3)]
        for visual in visuals.simple_bodies(model, [index]):
            at = named[index] @ visual.at
            if isinstance(visual.shape, geometry.Capsule):
                half = 0.5 * visual.shape.length * at[:3, 2]
                ends += [at[:3, 3] - half, at[:3, 3] + half]
        for link in model.links:
            if link.parent == index:
                place = np.array(link.joint.placement.position, dtype=float)
                assert min(np.linalg.norm(place - end) for end in ends) < 0.21 * size, (index, link.name)


@pytest.mark.parametrize("n", [1, 7, 30])
def test_bodies_are_drawn_for_any_chain(n: int):
    model = ls.robots.chain_model(n, seed=n, joints="mixed")
    found = visuals.simple_bodies(model, range(BASE, n))
    frames = {frame.name for frame in model.frames}
    assert found and all(visual.frame in frames and np.isfinite(visual.at).all() for visual in found)
    assert all(np.isfinite(geometry.surface_of(visual.shape).vertices).all() for visual in found)


def test_quaternions():
    from scipy.spatial.transform import Rotation

    turns = Rotation.random(500, rng=np.random.default_rng(0))
    halves = Rotation.from_rotvec(np.pi * np.eye(3))
    for given in (turns, halves, Rotation.identity(1)):
        found = geometry.quaternion_wxyz(given.as_matrix())
        back = Rotation.from_quat(found[:, [1, 2, 3, 0]]).as_matrix()
        assert np.abs(back - given.as_matrix()).max() < 1e-14
    axes = np.random.default_rng(1).normal(size=(50, 3))
    frames = geometry.rotation_along(axes)
    assert np.abs(frames @ np.swapaxes(frames, -1, -2) - np.eye(3)).max() < 1e-14
    assert np.abs(np.linalg.det(frames) - 1.0).max() < 1e-13
    assert np.abs(np.cross(frames[:, :, 2], axes)).max() < 1e-14
