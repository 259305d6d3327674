"""Machine code of kernels, what it asks of an SM, and the measured figures that say how long."""

from tbsched.sm.code.classes import Unit
from tbsched.sm.code.summary import Code, Mix, read_code
from tbsched.sm.code.tables import measured
from tbsched.sm.code.vendor import Versus, versus_vendor

__all__ = ["Code", "Mix", "Unit", "Versus", "measured", "read_code", "versus_vendor"]
