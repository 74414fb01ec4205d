"""Shared by all packages: argument checks, messages, files, signals, caches, display, settings."""
