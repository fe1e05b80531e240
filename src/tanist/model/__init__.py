"""The words of the domain: messages, topics, groups, routes, offsets, versions.

Plain frozen values, spelled on the wire and on disk as RocketMQ spells them. Nothing here reads a
socket, a file or a clock. Import from the module that holds the word: ``model.route``,
``model.topics``, ``model.groups``, ``model.subscription``, ``model.data_version``.
"""
