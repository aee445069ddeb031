"""What the CLIs keep in their users' home folders: where it is, versions, logins, records of sessions."""
