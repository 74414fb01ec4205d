"""What files state about a robot beside its dynamics: groups, named states, end effectors, drives of joints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JointData:
    """Properties of a joint's drive in a URDF file; None where the file has none.

    gear_ratio: motor turns per turn of the joint (`mechanicalReduction`, `drake:gear_ratio`). rotor_inertia: of the
    motor before the gear (kg m²); `armature` of the joint is rotor_inertia * gear_ratio². hardware_interfaces: names in
    <transmission>. soft_lower, soft_upper, k_position, k_velocity: <safety_controller>. rising, falling: <calibration>.
    """

    gear_ratio: float | None = None
    rotor_inertia: float | None = None
    hardware_interfaces: tuple[str, ...] = ()
    soft_lower: float | None = None
    soft_upper: float | None = None
    k_position: float | None = None
    k_velocity: float | None = None
    rising: float | None = None
    falling: float | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A named configuration of a group: coordinates of joints, in the order of linksweep's q."""

    name: str
    group: str
    joints: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class EndEffector:
    """An end effector of an SRDF file: `link` carries it, `group` has its joints, `parent_group` moves it."""

    name: str
    link: str
    group: str = ""
    parent_group: str = ""


@dataclass(frozen=True, slots=True)
class VirtualJoint:
    """The joint between the world and the base in an SRDF file: "fixed", "planar" or "floating"."""

    name: str
    type: str
    parent_frame: str
    child_link: str


@dataclass(frozen=True, slots=True)
class Semantics:
    """Everything of this module that files state about one robot. Names may be those of joints since removed."""

    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    states: tuple[State, ...] = ()
    end_effectors: tuple[EndEffector, ...] = ()
    virtual_joint: VirtualJoint | None = None
    joint_data: tuple[tuple[str, JointData], ...] = ()
    fixed_joints: tuple[str, ...] = ()
