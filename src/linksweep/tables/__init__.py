"""Trajectories and results as tables, read and written block by block: memory does not grow with their length."""

from linksweep.tables.columns import block_columns, joint_columns
from linksweep.tables.trajectories import open_trajectory, read_logged
from linksweep.tables.writing import check_output, check_place, write_table

__all__ = [
    "block_columns",
    "check_output",
    "check_place",
    "joint_columns",
    "open_trajectory",
    "read_logged",
    "write_table",
]
