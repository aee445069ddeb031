"""The strategies of the processes, one file each."""
