"""Rodriguez 1987, section XII: operations of filter and smoother against the composite method, by number of links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linksweep.algorithms.forward.composite import composite
from linksweep.algorithms.forward.filter_smoother import filter_smoother
from linksweep.errors import ArgumentError
from linksweep.papers.operation_counts import flops, forward_program, mass_matrix_program
from linksweep.papers.published_counts import FIGURE_4, RODRIGUEZ_2, RODRIGUEZ_3, crossing
from linksweep.papers.studies.report import Check, Study, markdown_table
from linksweep.tracing.count import Counts, count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINKS = 12
METHODS = {"filter_smoother": filter_smoother, "composite": composite}
# for each link; the paper's flops are pairs of a multiplication and an addition, hence 27N
TABLE_2 = Counts(*(int(part(1)) for part in (RODRIGUEZ_2.total.mul, RODRIGUEZ_2.total.add, RODRIGUEZ_2.total.div)))
FILTER, COMPOSITE, PRINTED_COMPOSITE = FIGURE_4.values()  # the paper's: by Table III, and with the printed 2N(N + 5)


@dataclass(frozen=True, slots=True)
class Row:
    """Operations of forward dynamics of n links by method, without and with bias terms, and of assembling M."""

    n: int
    plain: dict[str, Counts]
    with_bias: dict[str, Counts]
    assembly: Counts


def compute(links: int = LINKS) -> list[Row]:
    """Counts for 1 to `links` links."""
    if links < 7:
        raise ArgumentError(f"the planar study got links = {links}, expected at least 7: the curves cross before that.")
    rows = []
    for n in range(1, links + 1):
        plain, bias = (
            {name: count(forward_program(n, method, with_bias)) for name, method in METHODS.items()}
            for with_bias in (False, True)
        )
        rows.append(Row(n, plain, bias, count(mass_matrix_program(n))))
    return rows


def operations(counts: Counts) -> int:
    return counts.mul + counts.add + counts.div


def _crossing(counts: list[dict[str, Counts]]) -> int | None:
    """The number of links from which the filter costs less; counts are those of 1, 2, ... links."""
    filtered, composed = ({n: flops(by[name]) for n, by in enumerate(counts, start=1)} for name in METHODS)
    return crossing(filtered.__getitem__, composed.__getitem__, list(filtered))


def study(links: int = LINKS) -> Study:
    rows = compute(links)
    crossings = {
        "published": crossing(FILTER, COMPOSITE),
        "printed": crossing(FILTER, PRINTED_COMPOSITE),
        "ours": _crossing([row.plain for row in rows]),
        "bias": _crossing([row.with_bias for row in rows]),
    }
    further_link = _further_link(rows)
    per_link = Counts(TABLE_2.mul + TABLE_2.div, TABLE_2.add, 1)
    checks = [
        Check(
            "number of links from which the filter is cheaper, by Table III", crossings["published"] or 0,
            "stated: N ≥ 5", crossings["published"] == 5,
        ),
        Check(
            "operations of each further link, traced",
            operations(further_link), f"Table II: {operations(TABLE_2)}, with one reciprocal {operations(per_link)}",
            further_link == per_link,
        ),
    ]  # fmt: skip
    header = ["links"]
    for kind in ("plain", "bias"):
        header += [f"{kind}.{name}.{op}" for name in METHODS for op in ("mul", "add", "div")]
    header += ["assembly.mul", "assembly.add", "paper.filter_smoother", "table_3.composite", "printed.composite"]
    table = [
        [
            row.n,
            *(x for by in (row.plain, row.with_bias) for name in METHODS for x in _three(by[name])),
            row.assembly.mul, row.assembly.add,
            float(FILTER(row.n)), float(COMPOSITE(row.n)), float(PRINTED_COMPOSITE(row.n)),
        ]
        for row in rows
    ]  # fmt: skip
    return Study("planar", _report(rows, crossings, further_link), {"planar": (header, table)}, _figures(rows), checks)


def _table_3(n: int) -> Counts:
    return Counts(int(RODRIGUEZ_3.total.mul(n)), int(RODRIGUEZ_3.total.add(n)))


def _three(counts: Counts) -> tuple[int, int, int]:
    return counts.mul, counts.add, counts.div


def _further_link(rows: list[Row]) -> Counts:
    """Operations that one more link adds to the filter; the first links are cheaper."""
    last, before = rows[-1].plain["filter_smoother"], rows[-2].plain["filter_smoother"]
    return Counts(last.mul - before.mul, last.add - before.add, last.div - before.div)


def _figures(rows: list[Row]) -> dict:
    from linksweep import plots

    n = [row.n for row in rows]

    def figure_4() -> Figure:
        curves = {
            "filter and smoother, paper: 27N": [float(FILTER(k)) for k in n],
            "composite, paper: N³/3 + N² + 2N(N + 5)": [float(PRINTED_COMPOSITE(k)) for k in n],
            "composite, by Table III: N³/3 + N² + N(2N + 7)": [float(COMPOSITE(k)) for k in n],
            "filter and smoother, traced": [flops(row.plain["filter_smoother"]) for row in rows],
            "composite, traced": [flops(row.plain["composite"]) for row in rows],
        }
        title = "Forward dynamics of a planar chain, no bias terms"
        return plots.lines(n, curves, title=title, x_label="links", y_label="flops (multiply-add pairs)", markers=True)

    def with_bias() -> Figure:
        curves = {name: [float(operations(row.with_bias[name])) for row in rows] for name in METHODS}
        return plots.lines(
            n, curves, title="Forward dynamics of a planar chain, with velocities and gravity", x_label="links",
            y_label="operations", markers=True,
        )  # fmt: skip

    return {
        "planar_fig4": ("Fig. 4: operation count for two methods.", figure_4),
        "planar_bias": ("All multiplications, additions and divisions, bias terms included.", with_bias),
    }


def _report(rows: list[Row], crossings: dict[str, int | None], further_link: Counts) -> str:
    words = {key: f"from {n} links on" if n else "not in this range" for key, n in crossings.items()}
    head = [
        "links",
        "filter, paper",
        "filter, traced",
        "composite, as printed",
        "composite, by Table III",
        "composite, traced",
    ]
    table = [
        [
            row.n, f"{float(FILTER(row.n)):g}", f"{flops(row.plain['filter_smoother']):g}",
            f"{float(PRINTED_COMPOSITE(row.n)):.1f}", f"{float(COMPOSITE(row.n)):.1f}",
            f"{flops(row.plain['composite']):g}",
        ]
        for row in rows
    ]  # fmt: skip
    assembly = [
        [row.n, *(f"{counts.mul} / {counts.add}" for counts in (_table_3(row.n), row.assembly))] for row in rows
    ]
    full = [[row.n, *(" / ".join(map(str, _three(row.with_bias[name]))) for name in METHODS)] for row in rows]
    return f"""# Planar chain: operations of two methods

G. Rodriguez, *Kalman filtering, smoothing, and recursive robot arm forward and inverse dynamics* (1987), section
XII. The paper counts by hand the scalar equations of a planar chain. Here the general recursions for spatial motion
are traced for the planar robot, zeros and constants are folded, and the remaining operations are counted. Links differ
in length, mass and inertia. As in the paper, sines and cosines are not counted.

## Fig. 4: flops without bias terms

A flop is a pair of a multiplication and an addition; divisions are not in the paper's 27N either.

{markdown_table(head, table)}

{{figure:planar_fig4}}

The filter needs fewer flops than the composite method

- {words["printed"]} by the paper's formulas, 27N and N³/3 + N² + 2N(N + 5), although the paper states N ≥ 5;
- {words["published"]} if the assembly costs N(2N + 7), the sum of Table III;
- {words["ours"]} in the traced programs.

The traced composite method is below the paper's estimate, so the curves cross later. Its assembly costs less than Table
III (below), and its factorisation N³/6 pairs; the paper's N³/3 is the number of single operations.

For each further link the traced filter has {further_link.mul} multiplications, {further_link.add} additions and
{further_link.div} division. Table II has {TABLE_2.mul}, {TABLE_2.add} and {TABLE_2.div}. We replace its three divisions
by D by one reciprocal and three products. These are totals; single rows differ (operation counts, table `rodriguez_2`).

## Table III: assembly of the mass matrix

Multiplications / additions:

{markdown_table(["links", "Table III", "traced"], assembly)}

## With velocities and gravity

Multiplications / additions / divisions of forward dynamics with all bias terms. The filter needs fewer flops
{words["bias"]}.

{markdown_table(["links", *METHODS], full)}

{{figure:planar_bias}}
"""
