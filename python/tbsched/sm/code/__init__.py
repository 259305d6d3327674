"""Machine code of kernels, what it asks of an SM, and the measured figures that say how long."""

from tbsched.sm.code.classes import Unit
from tbsched.sm.code.profile import Mix, Profile, profile
from tbsched.sm.code.tables import measured
from tbsched.sm.code.vendor import Versus, versus_vendor

__all__ = ["Mix", "Profile", "Unit", "Versus", "measured", "profile", "versus_vendor"]
