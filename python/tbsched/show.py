"""How results are shown to a person, and handed to other programs."""

from importlib import import_module
from typing import TYPE_CHECKING

# Which module of tbsched.views has each public name; each loads matplotlib and others itself.
_NAMES_OF = {
    "cards": "to_html",
    "files.perfetto": "to_perfetto",
    "files.tables": "to_arrow to_csv to_parquet",
    "pictures.blocks": "blocks",
    "pictures.compared": "compared",
    "pictures.gantt": "gantt",
    "pictures.ladders": "ladder",
    "pictures.maps": "sm_map",
    "pictures.resources": "resources",
}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names.split()}

if TYPE_CHECKING:
    from tbsched.views.cards import to_html as to_html
    from tbsched.views.files.perfetto import to_perfetto as to_perfetto
    from tbsched.views.files.tables import to_arrow as to_arrow
    from tbsched.views.files.tables import to_csv as to_csv
    from tbsched.views.files.tables import to_parquet as to_parquet
    from tbsched.views.pictures.blocks import blocks as blocks
    from tbsched.views.pictures.compared import compared as compared
    from tbsched.views.pictures.gantt import gantt as gantt
    from tbsched.views.pictures.ladders import ladder as ladder
    from tbsched.views.pictures.maps import sm_map as sm_map
    from tbsched.views.pictures.resources import resources as resources
else:
    __all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Imports a picture or a file format when it is first used, and returns it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"tbsched.views.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
