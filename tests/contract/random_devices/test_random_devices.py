"""Every device that validation accepts, under every policy: predictions that can be."""

from __future__ import annotations

import pytest

from contract.random_devices.properties import ONCE, PROPERTIES, Property, checked


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
def test_property_holds_on_random_devices(holds: Property) -> None:
    checked(holds, ONCE)()
