"""How a disagreement becomes a small counterexample."""
