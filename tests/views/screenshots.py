"""Draws each view in headless Chromium, light and dark: ``make screenshots OUT=folder``."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from PIL import Image, ImageChops

import tbsched as tb
from views.gallery import GALLERY

WIDTH, MARGIN = 1024, 24
SCHEMES = {"dark": 0, "light": 1}  # as Chromium numbers them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--only", nargs="*", choices=GALLERY, default=list(GALLERY))
    parser.add_argument("--height", type=int, default=4000)
    options = parser.parse_args()
    browser = browser_of(parser)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        value = GALLERY[name]()
        page = options.out / f"{name}.html"
        began = time.perf_counter()
        tb.show.to_html(value, page)
        took = time.perf_counter() - began
        print(
            f"{name:<22}{page.stat().st_size / 1000:>8,.0f} KB{1000 * took:>8,.0f} ms", flush=True
        )
        for scheme, number in SCHEMES.items():
            picture = options.out / f"{name}-{scheme}.png"
            shoot(browser, page, picture, number, options.height)


def browser_of(parser: argparse.ArgumentParser) -> str:
    """The path of Chromium; without one the parser says so, and ends the program."""
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome")))
    browser = next(found, "")
    if not browser:
        parser.error("neither chromium, chromium-browser nor chrome is there")
    return browser


def shoot(browser: str, page: Path, picture: Path, scheme: int, height: int) -> None:
    """A picture of a page."""
    subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--window-size={WIDTH},{height}", f"--screenshot={picture}", page.absolute().as_uri(),
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    with Image.open(picture) as shot:
        whole = shot.convert("RGB")
    page_only = Image.new("RGB", whole.size, whole.getpixel((0, 0)))
    box = ImageChops.difference(whole, page_only).getbbox()
    if box is not None:
        whole.crop((0, 0, WIDTH, min(box[3] + MARGIN, height))).save(picture)


if __name__ == "__main__":
    main()
