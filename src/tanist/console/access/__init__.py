"""Who may come in, and what they did: passwords, users, sessions, the limit on logins, the audit log."""
