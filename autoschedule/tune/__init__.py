"""Times candidates on the device, and keeps a database of the fastest."""
