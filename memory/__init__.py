"""The science: pure functions and frozen policies. No I/O and no clock: `now` and `turn` are arguments."""
