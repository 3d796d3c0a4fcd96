"""Measurements. They print one table and write JSON under bench/out; they are never timed tests."""
