"""The seeded simulation: schedulers, workers and clients on a virtual clock, over a memory store behind a lossy port."""
