"""Everything that knows Faust: apps, tables, recovery, transports."""
