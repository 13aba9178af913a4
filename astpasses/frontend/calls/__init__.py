"""What answers a call in staged code: NumPy, builtins, `math`, methods, the user's functions and ours."""
