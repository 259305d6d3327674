"""Values as files of other programs, and as the tables of other libraries."""
