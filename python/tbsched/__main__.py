"""Runs ``python -m tbsched``."""

from tbsched.cli import main

main()
