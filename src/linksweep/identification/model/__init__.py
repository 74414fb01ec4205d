"""What is unknown: the regressor of links and drives, and the fewest numbers on which torques depend."""
