"""The parts of bench/detector: each measures one thing, with measure(stand)."""
