"""Contracts: what travels on topics and what is stored."""
