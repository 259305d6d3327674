"""What else a device may be: other devices that agree with it on every sequence tried."""
