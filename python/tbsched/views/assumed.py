"""What a result rests on that is assumed for its GPU, in one line."""

from __future__ import annotations

from markupsafe import Markup

from tbsched.hardware.catalogue import devices
from tbsched.traces.placement import DeviceInfo
from tbsched.views.cards import note_html

_SHOWN = 4  # rules


def assumed_words(rules: tuple[str, ...] | None, device: DeviceInfo) -> str:
    """Returns the rules by name, and where their sources are; empty if none is assumed."""
    if not rules:
        return ""
    name = device.details.get("model", device.name)
    more = f" and {len(rules) - _SHOWN} more" if len(rules) > _SHOWN else ""
    source_words = f" (tbsched devices {name})" if name in devices() else ""
    return f"Assumed on {name}: {', '.join(rules[:_SHOWN])}{more}{source_words}."


def assumed_lines(rules: tuple[str, ...] | None, device: DeviceInfo) -> list[str]:
    """Returns the rules that are assumed, as lines of text: one or none."""
    words = assumed_words(rules, device)
    return [words] if words else []


def assumed_html(rules: tuple[str, ...] | None, device: DeviceInfo) -> Markup:
    """Returns the rules that are assumed, as a note of a card."""
    words = assumed_words(rules, device)
    return note_html(words) if words else Markup()
