"""Kinematics, momentum, energy and the regressor of any robot, on a fixed or a floating base."""
