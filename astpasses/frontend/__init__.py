"""Python source becomes a staged core program."""
