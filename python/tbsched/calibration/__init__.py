"""Measures a device from launches and observations, and says how sure each value is."""

from tbsched.calibration.calibrate import calibrate
from tbsched.calibration.doubt.witnesses import Witness
from tbsched.calibration.finding import Finding
from tbsched.calibration.results import Calibration, Certificate

__all__ = ["Calibration", "Certificate", "Finding", "Witness", "calibrate"]
