"""Variants of a kernel that compute the same, and a search for the fastest.

>>> import tbsched as tb
>>> found = tb.sm.variants("walsh_shared_f32.cubin", threads=256)  # doctest: +SKIP
>>> tb.sm.search(found, tb.sm.launcher(arguments, grid=4096, block=256))  # doctest: +SKIP
"""

from tbsched.sm.rewriting.launching import launcher
from tbsched.sm.rewriting.making import Variant, Variants, variants
from tbsched.sm.rewriting.searching import Ratio, Search, Timing, search

__all__ = ["Ratio", "Search", "Timing", "Variant", "Variants", "launcher", "search", "variants"]
