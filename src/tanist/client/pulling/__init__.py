"""Getting messages out of a queue: ``pull_loop`` for its owner, ``pull_by_hand`` for anybody.

``fetching`` asks once, at the replica that ``replica_choice`` names; ``fetched`` reads the answer and
``pull_pace`` says how much more there is room for. The last three are pure.
``pulse`` finds out that a broker is silent at which pulls wait.
"""
