"""Program transformations: Function -> Function."""
