"""The pure core of the memory: functions and frozen policies. No I/O and no clock: `now` and `turn` are arguments."""
