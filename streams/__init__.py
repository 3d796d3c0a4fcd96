"""What every stage runs on: transports, lanes, tables, the boundary of errors, the one handler shape."""
