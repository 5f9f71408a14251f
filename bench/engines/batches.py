"""Sequences of token ids as padded batches: what engines with rectangular inputs compute."""

import numpy as np

PAD = 0


class Batch:
    """Padded arrays, and which sequences of the workload its rows are."""

    def __init__(self, rows, sequences, separator):
        length = max(len(sequence) for sequence in sequences)
        shape = (len(sequences), length)
        self.rows = rows
        self.ids = np.full(shape, PAD, dtype=np.int64)
        self.mask = np.zeros(shape, dtype=np.int64)
        self.types = np.zeros(shape, dtype=np.int64)
        for row, sequence in enumerate(sequences):
            self.ids[row, : len(sequence)] = sequence
            self.mask[row, : len(sequence)] = 1
            if separator is not None:
                self.types[row, sequence.index(separator) + 1 : len(sequence)] = 1

    @property
    def arrays(self):
        return self.ids, self.mask, self.types


def cut(sequences, size, order, separator=None):
    """Batches of `size` in the order given, or sorted by length so that little is padded.

    With a separator the sequences are pairs, whose second text has type 1.
    """
    rows = list(range(len(sequences)))
    if order == "sorted":
        rows.sort(key=lambda row: len(sequences[row]), reverse=True)
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [Batch(part, [sequences[row] for row in part], separator) for part in parts]
