"""How the programs in Python of the sixth set begin."""

import atexit
import os
import time
from pathlib import Path


def take() -> None:
    """Waits until the file exists that HANGS_GO names. A program that ends by itself says so."""
    while (go := os.environ.get("HANGS_GO")) and not Path(go).exists():
        time.sleep(0.005)
    atexit.register(print, "ended", flush=True)
