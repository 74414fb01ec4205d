"""Numbers that bodies can have, and the robot that has them."""
