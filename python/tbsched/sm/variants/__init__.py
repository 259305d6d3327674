"""Variants of kernels."""
