"""The commands of ``tanist admin`` that are ``mqadmin``'s, a module a subject, each with its ``COMMANDS``.

A module's first line is its heading in docs/reference/commands.md.
"""
