"""Where parts are put together: the application of users' code, and what the roles are made of."""
