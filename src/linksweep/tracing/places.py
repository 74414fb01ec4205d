"""Where the elements of a regressor stand, dense or packed: which link asks what of which joint."""

from __future__ import annotations

from dataclasses import dataclass

from ..description.model import BASE
from ..mechanism.canonical import CanonicalModel

TEN = 10  # parameters of a link, beside the armature of its joint


@dataclass(frozen=True, slots=True)
class Places:
    """Parameter k of link i asks of freedom f of joint j what stands at of_link[i] + of_joint[j] + f row + k; freedom f
    of joint i asks of its own armature what stands at motor[i] + f motor_row. Tables by link, in sweep order."""

    of_link: tuple[int, ...]
    of_joint: tuple[int, ...]
    row: int
    motor: tuple[int, ...]
    motor_row: int
    size: int


def parameter_places(model: CanonicalModel, packed: bool) -> Places:
    """Dense: (nv, 11 links), rows after rows. Packed: for each link in document order the rows of the joints between
    the base and itself, ten numbers each; then a number for each rate, what its joint's armature asks."""
    links = model.links
    nv = model.nv
    if not packed:
        width = (TEN + 1) * len(links)
        return Places(
            tuple(TEN * link.row for link in links), tuple(link.start * width for link in links), width,
            tuple(link.start * width + TEN * len(links) + link.row for link in links), width, nv * width,
        )  # fmt: skip
    above: list[int] = []  # freedoms between the base and the joint, without its own
    for link in links:
        above.append(0 if link.parent == BASE else above[link.parent] + links[link.parent].nv)
    of_link, total = [0] * len(links), 0
    for i in sorted(range(len(links)), key=lambda i: links[i].row):
        of_link[i] = total
        total += TEN * (above[i] + links[i].nv)
    return Places(
        tuple(of_link), tuple(TEN * freedoms for freedoms in above), TEN, tuple(total + link.start for link in links),
        1, total + nv,
    )  # fmt: skip
