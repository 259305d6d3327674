"""Machine code of kernels, and what it asks of an SM."""

from tbsched.sm.code.classes import Unit
from tbsched.sm.code.profile import Mix, Profile, profile
from tbsched.sm.code.tables import measured

__all__ = ["Mix", "Profile", "Unit", "measured", "profile"]
