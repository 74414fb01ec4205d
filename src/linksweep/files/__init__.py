"""Trajectories and results as tables, read and written block by block: memory does not grow with their length."""

from linksweep.files.reading import block_columns, joint_columns, open_trajectory, read_logged
from linksweep.files.writing import check_output, check_place, write_table

__all__ = [
    "block_columns",
    "check_output",
    "check_place",
    "joint_columns",
    "open_trajectory",
    "read_logged",
    "write_table",
]
