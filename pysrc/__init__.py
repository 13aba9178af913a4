"""metaphrase: the NumPy program a person wrote, translated into its derivative, its batch and native code."""
