"""User columns become clean arrays here, and errors name the argument."""
