"""From a Program to something that runs: the NumPy interpreter and LLVM."""
