"""Moving a group's offsets: plan, preview, apply, receipts, verify, undo.

Pure: ``times`` and ``targets`` (what an operator asks for), ``aiming`` (where that is in each queue),
``plan`` and ``plan_file``, ``cautions`` (what to think of first), ``journal`` (what is done), ``tally`` (who
has followed), ``progress``, ``judging`` (whether it holds). On the wire: ``places`` (whom to address),
``reading``, ``finding``, ``planning``, ``orders``, ``applying``, ``checking``, ``undoing``, and ``stock`` for
brokers that know no orders.
"""
