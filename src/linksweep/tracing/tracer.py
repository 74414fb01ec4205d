"""What turns the sweeps of an algorithm into a Program: one protocol for programs written out and for loops.

A tracer is a Sweep over symbols. It hands out its inputs by name, one record for each link, and takes results by their
place. `UnrolledTrace` writes every link out and `Rolled` makes a loop of each sweep: either has a `program` at the end.
`UnrolledRun` computes with numbers instead. Whoever asks for a function of a robot (catalogue/) need not know which it
has, unless a method can only be written out: then it asks for an `UnrolledRun`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..mechanism.canonical_model import CanonicalModel
from ..mechanism.joints import Coordinates
from ..mechanism.sweeps import Pairs, PerLink, Sweep
from ..spatial.algebra import Force, Motion
from ..spatial.scalars import Rows, Values
from .expression import Operand
from .program import Array


class PairBlocks(Protocol):
    """Of links i and j inward of it, a field of what `write_pair_blocks` takes: rows of j, and rows of i."""

    above: Rows
    below: Rows


class ParameterColumns(Protocol):
    """Of links i and j inward of it, what `write_parameters` takes: forces of j by each of i's parameters."""

    columns: Sequence[Values]
    motor: Values


class Tracer(Sweep, Protocol):
    @property
    def model(self) -> CanonicalModel: ...

    @property
    def inputs(self) -> tuple[Array, ...]: ...

    def read(self, name: str) -> PerLink[Coordinates]:
        """Rates or accelerations (nv), by link."""
        ...

    def read_forces(self, name: str) -> PerLink[Coordinates]:
        """Joint forces (nv), by link; none at joints that follow others."""
        ...

    def read_rows(self, name: str, width: int) -> PerLink[Values]:
        """An input (links, width), by link."""
        ...

    def read_flat(self, name: str) -> Sequence[Operand]:
        """All numbers of an input, of no link in particular."""
        ...

    def write(self, output: int, values: Sequence[Operand]) -> None:
        """Write a whole result, element by element."""
        ...

    def write_forces(self, output: int, per_link: PerLink[Values]) -> None:
        """Write joint forces to a result of nv numbers; those of coupled joints add up."""
        ...

    def write_rates(self, output: int, per_link: PerLink[Values]) -> None:
        """Write rates or accelerations to a result of nv numbers."""
        ...

    def write_columns(self, output: int, per_link: PerLink[Sequence[Motion | Force]]) -> None:
        """Write the next rows of a result, a column for each rate."""
        ...

    def write_pairs(self, output: int, elements: Pairs, mirrored: bool = True) -> None:
        """Write a square result from the blocks of pairs and, mirrored, their transposes."""
        ...

    def write_pair_blocks(self, elements: Pairs, fields: Mapping[int, str]) -> None:
        """Write square results from a field each of the pairs' records: blocks `above` in the rows of j and columns
        of i, `below` the reverse."""
        ...

    def write_parameters(self, output: int, elements: Pairs, packed: bool) -> None:
        """Write a regressor from its pairs' records: `columns` of ten, and of a link with itself `motor`."""
        ...


def place_of(inputs: Sequence[Array], name: str) -> int:
    """Where an input of this name stands."""
    return next(k for k, array in enumerate(inputs) if array.name == name)
