"""What exists while a compiled program runs; knows no compiler, only the text it is handed."""
