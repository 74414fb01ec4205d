"""What every room needs and no room owns: messages, files, signals, the version."""
