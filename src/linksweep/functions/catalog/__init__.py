"""The declared robot functions, a module for each group.

A module has a table `DECLARED` of functions by name. functions.py imports all modules of this folder.
"""
