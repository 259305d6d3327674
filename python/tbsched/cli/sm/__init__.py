"""``tbsched sm``: what runs inside the SMs."""
