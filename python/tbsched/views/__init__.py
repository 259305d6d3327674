"""Every result as text, HTML, a table, data for JSON, a picture and a file: a file per result.

The views of a value are asked for here. ``tbsched.show`` has the pictures and the files.
"""

from tbsched.shown import SHOWN as SHOWN
from tbsched.shown import WITHOUT_TABLE as WITHOUT_TABLE
from tbsched.shown import Shown as Shown
from tbsched.shown import columns as columns
from tbsched.shown import data as data
from tbsched.shown import explanation as explanation
from tbsched.shown import html as html
from tbsched.shown import short as short
from tbsched.shown import text as text
