"""How results are shown to a person, and handed to other programs."""

from importlib import import_module
from typing import TYPE_CHECKING

# Which module each public name is in; matplotlib and others are loaded with it, and not before.
_NAMES_OF = {
    "files.arrow": "to_arrow to_parquet",
    "files.csv": "to_csv",
    "files.perfetto": "to_perfetto",
    "html.pages": "to_html",
    "pictures.blocks": "blocks",
    "pictures.compared": "compared",
    "pictures.gantt": "gantt",
    "pictures.ladders": "ladder",
    "pictures.maps": "sm_map",
    "pictures.resources": "resources",
}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names.split()}

if TYPE_CHECKING:
    from tbsched.show.files.arrow import to_arrow as to_arrow
    from tbsched.show.files.arrow import to_parquet as to_parquet
    from tbsched.show.files.csv import to_csv as to_csv
    from tbsched.show.files.perfetto import to_perfetto as to_perfetto
    from tbsched.show.html.pages import to_html as to_html
    from tbsched.show.pictures.blocks import blocks as blocks
    from tbsched.show.pictures.compared import compared as compared
    from tbsched.show.pictures.gantt import gantt as gantt
    from tbsched.show.pictures.ladders import ladder as ladder
    from tbsched.show.pictures.maps import sm_map as sm_map
    from tbsched.show.pictures.resources import resources as resources
else:
    __all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
