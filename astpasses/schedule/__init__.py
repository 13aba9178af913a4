"""Core programs become fused loop nests over buffers."""
