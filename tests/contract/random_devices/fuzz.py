"""Random programs on random devices for so many seconds, each time others.

    python tests/sanitize.py --seconds 600

runs it with the sanitizers. What fails is shrunk and shown; the seed draws it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from hypothesis import seed, settings

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from contract.random_devices.properties import ONCE, PROPERTIES, checked

BATCH = settings(ONCE, max_examples=100, derandomize=False)


def main() -> None:
    """Batch after batch, until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    end, batch = time.monotonic() + arguments.seconds, arguments.seed
    while time.monotonic() < end:
        for holds in PROPERTIES:
            print(f"{holds.__name__}, seed {batch}", flush=True)
            seed(batch)(checked(holds, BATCH))()
        batch += 1


if __name__ == "__main__":
    main()
