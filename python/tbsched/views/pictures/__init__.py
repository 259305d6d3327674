"""Pictures of results, by matplotlib: each function draws into the axes that it is given."""

from tbsched.errors import missing

try:
    import matplotlib as matplotlib
except ImportError as error:
    raise missing("pictures", "matplotlib", "matplotlib") from error
