"""A failover rehearsed on a live group: ``readiness`` says whether it is safe, ``probe`` sends and consumes
meanwhile and says what was seen, ``drill`` moves mastership and brings it back.
"""
