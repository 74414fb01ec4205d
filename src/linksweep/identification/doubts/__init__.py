"""What may be wrong with a log although it can be fitted: tests on its blocks, and the remarks that they lead to."""
