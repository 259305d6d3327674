"""Runs ``python -m tbsched``."""

from tbsched.cli.app import main

main()
