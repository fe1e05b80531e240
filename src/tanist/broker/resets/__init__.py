"""Orders to move a group: what was ordered, who was told, and who was seen to follow.

``targets`` says where to, ``table`` keeps the orders and decides about them, ``watch`` follows one that is
applied until its clients have moved, ``receipts`` is one client of it, ``carrying`` does what they decide.
``corrections`` watches consumers that ask for offsets which their queues do not have.
"""
