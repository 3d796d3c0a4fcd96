"""The science of memory: pure functions over frozen policies; no I/O, no clock."""
