"""Calibrates the GPU here from nothing, and compares every value with the shipped device file.

python tests/lab/calibration/from_nothing.py --out report --seconds 60
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from pathlib import Path

import tbsched as tb
from tbsched import views
from tbsched.calibration import Calibration, table
from tbsched.calibration.asking.lab import Inconclusive, Lab
from tbsched.calibration.finding import KnownValues
from tbsched.calibration.probes.streams.latencies import SLACK_NS, SLACK_SHARE
from tbsched.campaigns.oracles import open_oracle
from tbsched.hardware.catalogue import device_titled
from tbsched.hardware.device_fields import FIELDS


def compared(calibration: Calibration, shipped: tb.DeviceSpec) -> list[str]:
    """A line per value that the probes asked for, and whether the shipped file says the same."""
    lines = []
    for field in FIELDS:
        try:
            finding = calibration.finding(field.path)
        except KeyError:
            continue
        theirs = field.of(shipped)
        same = f"DIFFERS, shipped {theirs}"
        if finding.value == theirs:
            same = "same"
        elif field.type == "ns" and abs(finding.value - theirs) <= max(
            SLACK_NS, SLACK_SHARE * theirs
        ):
            same = f"same as {theirs}, to 0.1 us or a tenth"
        lines.append(f"{finding.kind:8} {field.path} = {finding.value}: {same}")
    return lines


def one_by_one(oracle: str, seconds: float) -> None:
    """Probes alone, each with what went wrong: for when a calibration ends in an error."""
    with open_oracle(oracle) as opened:
        lab, found = Lab(opened, seconds, lambda _: None), KnownValues()
        for probe in table.PROBES:
            try:
                for finding in table.run(probe, lab, found):
                    print(f"  {finding.kind} {finding.path} = {finding.value} ({finding.because})")
            except Inconclusive as error:
                print(f"{probe.name}: {error}")
            except Exception:
                traceback.print_exc()
            print(f"{probe.name}: {lab.sequences} sequences, {lab.spent:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--oracle", default="gpu", help="a device rehearses")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    try:
        calibration = tb.calibrate(
            asked.oracle, asked.seconds, evidence=asked.out / "evidence.jsonl", progress=False
        )
    except Exception:
        traceback.print_exc()
        one_by_one(asked.oracle, asked.seconds - (time.monotonic() - start))
        raise SystemExit(1) from None
    calibration.save(asked.out / "calibrated.toml")
    tb.show.to_html(calibration, asked.out / "calibration.html")
    (asked.out / "calibration.json").write_text(json.dumps(views.data(calibration)))
    (asked.out / "calibration.txt").write_text(f"{calibration}\n")
    for step in calibration.steps:
        print(f"{step.probe}: {step.sequences} sequences, {step.seconds:.1f} s, {step.failure}")
    print(str(calibration).partition("\n\n")[0])
    shipped = device_titled(calibration.spec.title, calibration.spec.sms)
    if shipped is None:
        print(f"no shipped device is called {calibration.spec.title!r}")
        return
    lines = compared(calibration, shipped)
    (asked.out / "compared.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(line for line in lines if "DIFFERS" in line or line.startswith("assumed")))
    print(f"{sum('DIFFERS' in line for line in lines)} of {len(lines)} values differ")
    # The file that was written is read back, and scored with fresh sequences of its own.
    again = tb.fuzz(
        asked.oracle, str(asked.out / "calibrated.toml"), level="exact", seed=20, max_seconds=5,
        without=calibration.certificate.left_out, progress=False,
    )  # fmt: skip
    print(again)


if __name__ == "__main__":
    main()
