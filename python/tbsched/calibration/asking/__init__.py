"""How probes ask: sequences that run, devices that are struck out, and what was tried."""
