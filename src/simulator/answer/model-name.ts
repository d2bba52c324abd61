/** A model called `anything-ctx4096` has a context window of 4096 tokens. */
export function contextWindowIn(model: string): number | undefined {
  const size = /-ctx(\d+)$/.exec(model)?.[1];
  return size === undefined ? undefined : Number(size);
}

/** Whether a test model reasons by default. */
export function reasonsByDefault(model: string): boolean {
  return /(?<!finish-)reason/.test(model);
}
