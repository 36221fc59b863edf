"""Use cases: ship, move traffic, roll back, reconcile, show. Here, and only here, the rooms are joined."""
