"""How the programs in Python begin."""

import os
import sys
import time
from pathlib import Path


def begin():
    """Waits until the file exists that HANGS_GO names; True if the fixed variant is asked for."""
    go = os.environ.get("HANGS_GO")
    while go and not Path(go).exists():
        time.sleep(0.005)
    return sys.argv[1:] == ["fixed"]
