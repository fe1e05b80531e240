"""On the path of a process that is to have a wall clock of its own."""
