"""Words that all parts share: tensors and contracts, revisions and digests, splits, samples, errors.

Nothing here touches a file, a socket, a clock or a random number.
"""
