"""From a measured log to rows with velocities and accelerations."""
