"""From an algorithm to a Program: expressions, rules, programs, and passes over them."""
