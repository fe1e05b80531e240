"""Whether two logs are the same, byte for byte, and a certificate of what was compared.

``blocks`` hashes and compares, ``certificate`` is what is kept of it, ``job`` divides the work among workers.
"""
