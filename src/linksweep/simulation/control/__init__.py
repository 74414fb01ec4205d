"""Control: formulas of laws over any scalar, laws that compose, sampled controllers."""
