"""What user code holds while it is staged: staged numbers and arrays, their views, what was captured."""
