/**
 * Sorted by bytes, as in SQLite: a collation of the operating system would be slower, and its
 * upgrades break indexes.
 */
export const text = 'text COLLATE "C"';
