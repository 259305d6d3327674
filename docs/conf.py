"""The site's settings: ``make docs`` builds it into build/site.

Code cells of the pages run while it is built; one that fails ends the build. Nothing is loaded from
the network, neither by the build nor by a reader's browser.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def digest_of_package() -> str:
    """What the outputs of code cells depend on, apart from the cells: the installed package."""
    spec = find_spec("tbsched")
    assert spec is not None
    assert spec.origin is not None
    found = hashlib.sha256()
    for path in sorted(Path(spec.origin).parent.rglob("*")):
        if path.suffix in {".py", ".so", ".toml"}:
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


project = "tbsched"
author = "the authors of tbsched"
version = release = metadata.version("tbsched")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["*.new", "figures/**"]
nitpicky = True
smartquotes_action = "D"  # quotation marks stay as they are typed
# Names of other libraries: their sites are not asked.
OTHERS = (
    "numpy|np|pandas|pd|pyarrow|pa|matplotlib|hypothesis|st|typing|os|collections|concurrent|"
    "dataclasses"
)
nitpick_ignore_regex = [
    ("py:.*", rf"({OTHERS})\..*"),
    ("py:class", r"Axes|Device|Path_|Executor|tbsched\..*\._\w+"),
    # What an account is made of.
    ("py:class", r"tbsched\.advice\.account\.(intervals|host_time|idle|peers|steps)\..*"),
    ("py:class", r"tbsched\.hangs\.calls\.HostCall|_launcher\.Gpu"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# Code cells find the command line.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# Kernels have settings of their own, not those of whoever builds the site.
KERNELS = ROOT / "build" / "ipython"
(KERNELS / "profile_default").mkdir(parents=True, exist_ok=True)
(KERNELS / "profile_default" / "ipython_kernel_config.py").write_text(
    "c = get_config()\nc.IPKernelApp.log_level = 'ERROR'\n", "utf-8"
)
os.environ["IPYTHONDIR"] = str(KERNELS)
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "examples" / digest_of_package())
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_execution_excludepatterns = ["notebooks/*"]  # their outputs are stored, and tests run them
nb_merge_streams = True

# Pages of the site, too: Sphinx finds only what is below its folder.
for notebook in (ROOT / "notebooks").glob("*.ipynb"):
    copy = Path(__file__).parent / "notebooks" / notebook.name
    if not copy.exists() or copy.read_bytes() != notebook.read_bytes():
        shutil.copyfile(notebook, copy)

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes as a list, like parameters

html_theme = "furo"
html_title = "tbsched"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "

LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]*\"")
LINKED = re.compile(r"<link\b(?![^>]*rel=\"canonical\")[^>]*\bhref=\"(?:https?:)?//[^\"]*\"")


def refuse_network(app: Any, exception: Exception | None) -> None:
    """Fails the build if a page would load something from elsewhere."""
    if exception is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf-8")
        for pattern in (LOADED, LINKED):
            if found := pattern.search(text):
                raise RuntimeError(f"{page}: it loads from the network: {found[0]}")


def reference_by_last_name(app: Any, env: Any, node: Any, shown: Any) -> Any:
    """Where a docstring's ``Trace`` or ``Report.seed`` leads: to the one object that ends so."""
    domain = env.get_domain("py")
    name = node["reftarget"]
    known = domain.objects.items()
    found = [full for full, row in known if full.endswith(f".{name}") and not row.aliased]
    if node["refdomain"] != "py" or len(found) != 1:
        return None
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], found[0], node, shown
    )


def setup(app: Any) -> None:
    app.connect("missing-reference", reference_by_last_name)
    app.connect("build-finished", refuse_network)
