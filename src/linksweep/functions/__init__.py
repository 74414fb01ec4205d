"""What can be asked of a robot, and how it is traced."""
