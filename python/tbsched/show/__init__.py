"""How results are shown to a person: as text, and as pictures."""

from tbsched.show.pictures import plot

__all__ = ["plot"]
