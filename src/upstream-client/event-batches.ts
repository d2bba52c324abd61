/** A streamed answer under way, in the batches its events come in. */
export interface EventBatches<Event> {
  /** The next batch, never empty; undefined after the last. One call at a time. */
  next(): Promise<readonly Event[] | undefined>;
  /** Closes the upstream, unless the answer is already whole. */
  cancel(): void;
}

/** An open streamed answer: its first batch of events, and the way to the others. */
export interface OpenStream<Event> {
  readonly first: readonly Event[];
  readonly rest: EventBatches<Event>;
}
