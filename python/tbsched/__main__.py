"""The command line, as ``python -m tbsched`` and as the installed script ``tbsched``."""

from typing import NoReturn

from tbsched.cli.interrupts import end_at_once, ending_at_once


def main() -> NoReturn:
    """Runs the command line; Ctrl-C ends it with status 130 from here on."""
    with ending_at_once():
        from tbsched.cli.app import main as run
    try:
        run()
    finally:
        end_at_once()  # while Python shuts down


if __name__ == "__main__":
    main()
