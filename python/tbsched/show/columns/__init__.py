"""Values as tables: a dict of columns of one length, for pandas, Arrow and CSV files.

docs/reference/tables.md says what each column holds.
"""
