"""Forward dynamics: one published recursion per file."""
