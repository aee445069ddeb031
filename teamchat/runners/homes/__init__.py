"""The CLIs' files in their users' home folders: where they are, versions, logins, records of sessions."""
