"""Benchmarks. Each prints one table and writes JSON under bench/out; none of them is a timed test."""
