"""``tbsched capacity`` and ``tbsched coresident``."""
