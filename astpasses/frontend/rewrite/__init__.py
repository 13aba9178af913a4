"""Python source -> the control stage: Python in, Python out. Nothing here knows a staged value."""
