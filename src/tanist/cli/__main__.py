"""``python -m tanist.cli``: the command ``tanist`` by the interpreter that runs this one."""

from tanist.cli.main import main

main()
