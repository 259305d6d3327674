"""Reasons for and against a launch configuration that a kernel's machine code gives."""
