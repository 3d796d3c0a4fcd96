"""Generators of files from the code: JSON Schemas, OpenAPI, AsyncAPI, and the tables of docs/reference."""
