"""The training room: one global model from one subsample of the clients."""
