"""Kernels that slow each other: what each needs, and what that does to others."""
