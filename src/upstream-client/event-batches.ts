/** An open streamed answer, read in batches of events. */
export interface EventBatches<Event> {
  /** Returns the next batch, never empty; undefined at the end. One call at a time. */
  next(): Promise<readonly Event[] | undefined>;
  /** Closes the upstream connection, unless the answer is complete. */
  cancel(): void;
}

/** An open streamed answer: its first batch of events and a reader for the rest. */
export interface OpenStream<Event> {
  readonly first: readonly Event[];
  readonly rest: EventBatches<Event>;
}
