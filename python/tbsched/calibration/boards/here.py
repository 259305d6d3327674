"""The attached GPU as a device: shipped rules, and the measured map of this board."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tbsched.calibration.asking.lab import Inconclusive
from tbsched.calibration.boards.describe import described, largest_cluster
from tbsched.calibration.boards.map import BoardMap, measured
from tbsched.hardware.catalogue import ATTACHED, nearest
from tbsched.hardware.described import channels_of_one_engine
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.device_file import INHERITED, assembled, inherited, read
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.hardware.written import device_toml
from tbsched.launcher.observe import Gpu
from tbsched.launcher.query import Queried, queried
from tbsched.storage import replacing

_BY_NAME = {field.name: field for field in FIELDS if field.section}
_MAP = ("gpcs", "sm_preference", "max_cluster")

# Value and provenance by field.
_Values = Mapping[Field, tuple[Any, Provenance]]


@functools.cache
def device_here() -> DeviceSpec:
    """Returns the attached GPU as :func:`tbsched.device` does; it is measured once per process.

    Raises:
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.
    """
    board_info = queried(0)
    base = nearest(
        str(board_info.info.details["compute_capability"]),
        board_info.info.name,
        board_info.info.sms,
    )
    board = _with_rules(board_info, base)
    saved = _saved_map(board_info, board)
    spec = board if saved is None else _overlaid(board, saved)
    if saved is None and (fresh := _measured(board)) is not None:
        values, trusted = fresh
        spec = _overlaid(board, values)
        if trusted and not board_info.mps:
            _save_map(board_info, board, values)
    _compared(spec, base)
    return spec


def _with_rules(board_info: Queried, base: DeviceSpec) -> DeviceSpec:
    """Returns the board with shipped rules, and with the shipped device's map if there is one."""
    if base.compute_capability != board_info.info.details["compute_capability"]:
        return described(board_info, ATTACHED, largest_cluster(0) if board_info.clusters else 1)
    is_same_gpu = base.title == board_info.info.name  # of which the recordings are, on a board
    checked = f"by the recordings of {base.name}" if is_same_gpu else ""
    values = {
        field: (field.of(base), inherited(base, field, checked)) for field in _BY_NAME.values()
    }
    if board_info.info.sms != base.sms:
        # What a file without a map says.
        first = described(board_info, ATTACHED, base.max_cluster)
        for name in ("gpcs", "sm_preference"):
            field = _BY_NAME[name]
            values[field] = (field.of(first), first.provenance[field.path])
    driver = f"driver {board_info.info.details['driver']}"
    origin = Provenance("measured", f"{driver}: cuDeviceGetName")
    values[_BY_NAME["title"]] = (board_info.info.name, origin)
    origin = Provenance("measured", f"{driver}: cuDeviceGetAttribute")
    values[_BY_NAME["compute_capability"]] = (base.compute_capability, origin)
    values[_BY_NAME["sms"]] = (board_info.info.sms, origin)
    if (engines := board_info.limits["copy_engine_count"]) != base.copy_engine_count:
        values[_BY_NAME["copy_engine_count"]] = (engines, origin)
        values.update(channels_of_one_engine(values))
    return assembled(ATTACHED, values)


def _measured(board: DeviceSpec) -> tuple[_Values, bool] | None:
    """Returns the map and whether the rules predict its launches; None: no map was found."""
    try:
        with Gpu(0) as gpu:
            board_map = measured(gpu, board)
    except (Inconclusive, ValueError) as error:
        _warn(
            f"the map of this board could not be measured: {error}. It is assumed to be the "
            "shipped one, if there is one"
        )
        return None
    if board_map.wrong:
        _warn(
            f"of {board_map.sequences} sequences that show the map, {board_map.wrong} went "
            "otherwise than the shipped rules predict. `tbsched calibrate` measures the rules"
        )
    return _rows(board_map), not board_map.wrong


def _rows(board_map: BoardMap) -> _Values:
    """Returns the values of a measured map, each with its provenance, by field."""
    return {
        _BY_NAME[name]: (value, Provenance("measured", f"on this board: {board_map.sources[name]}"))
        for name, value in board_map.values.items()
    }


def _overlaid(board: DeviceSpec, values: _Values) -> DeviceSpec:
    every = {field: (field.of(board), board.provenance[field.path]) for field in _BY_NAME.values()}
    return assembled(ATTACHED, {**every, **values})


def _compared(spec: DeviceSpec, base: DeviceSpec) -> None:
    """Warns if the board differs from the shipped device."""
    if spec.compute_capability != base.compute_capability:
        _warn(
            f"no shipped device has compute capability {spec.compute_capability}. The rules are "
            f"assumed to be those of {base.name}; `tbsched calibrate` measures them"
        )
        return
    differ = [name for name in ("sms", *_MAP) if getattr(spec, name) != getattr(base, name)]
    if differ:
        _warn(
            f"its map differs from that of {base.name} in {', '.join(differ)}: boards differ in "
            f"which units are fused off. Predictions use the map of this board; `tbsched devices "
            f"--diff {ATTACHED} {base.name}` shows both"
        )


def _warn(text: str) -> None:
    warnings.warn(f"device 'gpu': {text}", UserWarning, stacklevel=2)


def _map_file(board_info: Queried) -> Path:
    """Returns the cache file of a board's map, per driver, as drivers number SMs differently.

    Raises:
        RuntimeError: the user has no home.
    """
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = chosen if chosen.is_absolute() else Path.home() / ".cache"
    details = board_info.info.details
    return folder / "tbsched" / "boards" / str(details["uuid"]) / f"{details['driver']}.toml"


def _saved_map(board_info: Queried, board: DeviceSpec) -> _Values | None:
    """Returns the cached map; None if there is none that fits this board."""
    try:
        spec = read(_map_file(board_info), lambda _: board)
    except (OSError, ValueError, RuntimeError):
        return None
    values = {
        field: (field.of(spec), spec.provenance[field.path])
        for field in _BY_NAME.values()
        if spec.provenance[field.path].kind != INHERITED
    }
    return values if _BY_NAME["sm_preference"] in values else None


def _save_map(board_info: Queried, board: DeviceSpec, values: _Values) -> None:
    """Writes a board's map to the user's folder, so that it need not be measured again."""
    text = device_toml(
        _overlaid(board, values),
        {field.path: origin for field, (_, origin) in values.items()},
        "The map of a board, measured for tbsched.device('gpu'). Without this file it is measured\n"
        "again.",
        extends=board.name,
    )
    try:
        path = _map_file(board_info)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(text.encode())
    except (OSError, ValueError, RuntimeError) as error:
        _warn(f"its map is not kept, and will be measured again: {error}")
