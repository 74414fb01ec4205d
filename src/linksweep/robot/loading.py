"""`load` makes a Robot from a file, text or a name, `scene` combines several robots and bodies into one Robot."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, DescriptionError
from ..model.assembly import check_body
from ..model.constraints import as_placement
from ..model.formats import Folder, Source, bundled, is_text, load_model, text_of
from ..model.formats.packages import checked_folders, resolved_uri
from ..model.formats.srdf import read_srdf, with_srdf
from ..model.model import BASE, Frame, Inertial, Joint, Link, Model, Placement, compose, merge
from ..model.quantities import from_ten
from ..support.checks import one_of
from ..support.messages import nearest, shown
from .editing import WORLD, moved_ties, with_actuated, with_base
from .robot import Robot


def load(
    path: Source,
    base: str | None = None,
    mimic: str = "free",
    *,
    srdf: Source | None = None,
    root: Folder | None = None,
    actuated: Sequence[str] | None = None,
    xacro_args: Mapping[str, object] | None = None,
    packages: Folder | Sequence[Folder] = (),
) -> Robot:
    """Load a robot from a file or text, or by its name.

    Parameters
    ----------
    path : path, str, bytes or open file
        A URDF, xacro or MJCF file, or a DH table in TOML; URDF, xacro or MJCF text (str or bytes that begin with "<",
        such as ROS's robot_description); package://name/path or file:///path; the name of a bundled robot such as
        "puma560"; or a name of the package robot_descriptions such as "panda_description" (extra `robots`).
    base : "fixed" or "floating"
        "floating" adds a free joint between the world and the base (`Robot.with_base`). A robot with a floating base
        stays as it is. The default is "fixed", or the virtual joint of `srdf`.
    mimic : "free" or "couple"
        Mimic joints (URDF) and joints coupled by an equality (MJCF) are independent coordinates, with a warning that
        names them; or they follow their leaders, and the robot has the coordinates of the leaders only
        (`Robot.with_couplings`).
    srdf : path, str, bytes or open file
        An SRDF file or text of the robot: groups of joints (`Robot.groups`), named states (`Robot.states`), passive
        joints (`Robot.actuated`), end effectors (`Robot.ee`) and the virtual joint of the base.
    root : path
        A folder that contains every file that the model refers to. By default an MJCF file may only include XML files
        of its own folder, and a xacro file those of its ROS package.
    actuated : names
        The joints with motors (`Robot.with_actuated`). All but free joints, and the passive joints of `srdf`, by
        default.
    xacro_args : mapping
        Arguments of a xacro file, such as {"prefix": "left_"}. xacro needs the extra `ros`. The file is expanded in a
        confined process, see docs/descriptions.md.
    packages : folder or folders
        Folders with ROS packages, in which `$(find package)` and package:// look before ROS_PACKAGE_PATH and
        AMENT_PREFIX_PATH.

    Returns
    -------
    Robot

    Raises
    ------
    DescriptionError
        If the file cannot be read or describes an invalid robot.

    Examples
    --------
    >>> import linksweep as ls
    >>> ls.load("puma560").nv
    6
    """
    one_of("mimic", mimic, ("free", "couple"))
    if base is not None:
        one_of("base", base, ("fixed", "floating"))
    if isinstance(path, str) and is_description_name(path) and not os.path.lexists(path):
        from ..loaders import load_robot_description

        options = {"base": base, "mimic": mimic, "srdf": srdf, "root": root, "actuated": actuated}
        return load_robot_description(path, **options, xacro_args=xacro_args, packages=packages)
    semantics = None if srdf is None else read_srdf(srdf, text_of)
    if base is None:
        base = "fixed" if semantics is None else semantics.base
    floats = base == "floating"
    if isinstance(path, str) and "://" in path[:12] and not is_text(path):
        path = _file_of_uri(path, packages)
    if isinstance(path, str) and path in bundled.names():
        model = bundled.model(path)
    else:
        file = Path(path) if isinstance(path, (str, os.PathLike)) and not is_text(path) else None
        if file is not None:
            _check_exists(path)
        couple = mimic == "couple"
        model = load_model(path, rigid=floats, root=root, couple=couple, xacro_args=xacro_args, packages=packages)
        if file is not None:
            model = replace(model, source=str(file.resolve()))
    model = with_base(model, base) if floats else model
    model = model if semantics is None else with_srdf(model, semantics)
    return Robot(model if actuated is None else with_actuated(model, actuated))


def _file_of_uri(uri: str, packages: Folder | Sequence[Folder]) -> str:
    """Return the file of package://name/path and file:///path."""
    file = resolved_uri(uri, checked_folders(packages))
    if file is None:
        raise DescriptionError(
            f"{uri}: there is no such ROS package in packages=, ROS_PACKAGE_PATH or AMENT_PREFIX_PATH."
        )
    return file


def is_description_name(name: str) -> bool:
    """Whether `name` has the form of a name of the package robot_descriptions."""
    return name.endswith("_description") and name.isidentifier()


def _check_exists(path: object) -> None:
    """Raise DescriptionError for a folder, and for a word without a suffix that is not a bundled robot or a file."""
    if not isinstance(path, (str, os.PathLike)):
        return  # the reader raises the error
    if os.path.isdir(path):
        raise DescriptionError(f"{path}: this is a directory, expected a file with a robot model.")
    if isinstance(path, str) and not os.path.splitext(path)[1] and not os.path.lexists(path):
        known = bundled.names()
        raise DescriptionError(
            f"There is no robot {shown(path)}{nearest(path.lower(), known)}, expected a file or one of "
            f"{', '.join(known)}."
        )


SEPARATOR = "/"
Part = Robot | tuple[Robot, ArrayLike] | ArrayLike


def scene(parts: Mapping[str, Part], *, gravity: Sequence[float] | None = None, name: str = "scene") -> Robot:
    """Combine robots and bodies into one Robot whose base is the world.

    Parameters
    ----------
    parts : mapping
        {name: robot}, {name: (robot, pose)} with the pose (4, 4) of the robot's base in the world, or {name: body} with
        the inertial parameters (10,) of `linksweep.body` for a free body. Names of a robot's joints, links and frames
        get a prefix, as in "name/joint1". Link, frame and joint of a body have the body's name. Coordinates follow the
        order of the parts.
    gravity : (3,)
        In the world frame (m/s^2). By default that of the robots, which must agree.
    name : str

    Returns
    -------
    Robot
    """
    if not isinstance(parts, Mapping) or not parts:
        raise ArgumentError(f"scene got {shown(parts)}, expected a dict of robots and bodies by name.")
    links: list[Link] = []
    order: list[int] = []
    frames: list[Frame] = [Frame(WORLD, BASE)]
    ground, constraints, springs, couplings, gravities = Inertial(), [], [], [], {}
    for key, entry in parts.items():
        if not isinstance(key, str) or not key or key == WORLD:
            raise ArgumentError(f"a part of the scene is named {shown(key)}, expected a name other than 'world'.")
        part, at = _part(key, entry)
        first = len(links)
        if isinstance(part, Inertial):
            links.append(Link(key, BASE, Joint(key, "free", placement=at), part))
            frames.append(Frame(key, first))
            order.append(first)
            continue
        model, prefix = part.model, key + SEPARATOR
        gravities[key] = tuple(model.gravity)
        for link in model.links:
            placement = compose(at, link.joint.placement) if link.parent == BASE else link.joint.placement
            joint = replace(link.joint, name=prefix + link.joint.name, placement=placement)
            parent = BASE if link.parent == BASE else first + link.parent
            links.append(replace(link, name=prefix + link.name, parent=parent, joint=joint))
        for frame in model.frames:
            placement = compose(at, frame.placement) if frame.link == BASE else frame.placement
            host = BASE if frame.link == BASE else first + frame.link
            frames.append(Frame(prefix + frame.name, host, placement, prefix + frame.on if frame.on else ""))
        order += [first + index for index in model.document_order]
        ground = merge(ground, model.base_inertial, at)
        constraints += moved_ties(model.constraints, at, prefix)
        springs += moved_ties(model.springs, at, prefix)
        couplings += [replace(c, joint=prefix + c.joint, leader=prefix + c.leader) for c in model.couplings]
    if gravity is None and len(set(gravities.values())) > 1:
        raise ArgumentError(
            f"the robots of the scene have different gravity vectors, {shown(gravities)}; pass gravity=."
        )
    model = Model(
        name, tuple(links), tuple(order), tuple(frames), next(iter(gravities.values()), (0.0, 0.0, -9.81)), WORLD,
        ground, tuple(constraints), tuple(springs), tuple(couplings),
    )  # fmt: skip
    robot = Robot(model)
    return robot if gravity is None else robot.with_gravity(gravity)


def _part(key: str, part: Part) -> tuple[Robot | Inertial, Placement]:
    """Return a robot or an Inertial, and the placement of its base or free joint."""
    pose = None
    if isinstance(part, tuple) and len(part) == 2:
        part, pose = part
    at = as_placement(pose, f"the pose of {key!r}")
    if isinstance(part, Robot):
        return part, at
    return body_inertial(part, f"the part {key!r}"), at


def body_inertial(ten: ArrayLike, what: str) -> Inertial:
    """Return mass, center of mass and inertia about it, from the inertial parameters (10,) of `linksweep.body`."""
    try:
        numbers = np.asarray(ten, dtype=float)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros(0)
    if numbers.shape != (10,) or not np.isfinite(numbers).all():
        raise ArgumentError(
            f"{what} is {shown(ten)}, expected a Robot, (Robot, pose) or inertial parameters (10,), see linksweep.body."
        )
    if not numbers[0] > 0:
        raise ArgumentError(f"{what} has mass {numbers[0]}, expected a positive mass for a free body.")
    inertial = from_ten(numbers)
    check_body(what, inertial)
    return inertial
