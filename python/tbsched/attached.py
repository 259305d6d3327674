"""The GPU here as a device.

A device is found by its name far below what can measure one. So the module that does is looked up
by its name, and is imported when somebody asks for this GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULE, _FUNCTION = "tbsched.calibration.boards.here", "device_here"


def attached() -> Any:
    """Returns the device of the GPU here.

    Raises:
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.
    """
    return getattr(import_module(_MODULE), _FUNCTION)()
