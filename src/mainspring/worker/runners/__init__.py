"""How a handler is carried out: where it runs, and what can stop it."""
