"""Core programs become their derivative, their transpose, their batch."""
