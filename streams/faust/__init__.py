"""All code that knows Faust: apps, tables, recovery, transports."""
