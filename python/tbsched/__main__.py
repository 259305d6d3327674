"""The command line, as ``python -m tbsched`` and as the installed script ``tbsched``."""

from __future__ import annotations

from tbsched.cli.at_once import end_as_usual, end_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line; Ctrl-C ends it with status 130 from here on."""
    end_at_once()
    from tbsched.cli.app import main as run

    end_as_usual()
    try:
        run()
    finally:
        end_at_once()  # while Python shuts down


if __name__ == "__main__":
    main()
