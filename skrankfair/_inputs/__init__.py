"""Arguments of public functions become clean arrays, and errors name the argument."""
