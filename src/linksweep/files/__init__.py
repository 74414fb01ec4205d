"""Trajectories, logs and results as files. Tables are read and written in blocks, so memory does not grow with them."""

from linksweep.files.columns import block_columns, joint_columns
from linksweep.files.reading import JointLog, load_log, load_trajectory, open_trajectory, read_log
from linksweep.files.writing import check_output, check_place, write_joint_trajectory, write_table

__all__ = [
    "JointLog",
    "block_columns",
    "check_output",
    "check_place",
    "joint_columns",
    "load_log",
    "load_trajectory",
    "open_trajectory",
    "read_log",
    "write_joint_trajectory",
    "write_table",
]
