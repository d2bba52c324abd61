import type { Flow } from "../domain/waiting/flow.ts";

/** An open streamed answer, read in batches of events, none of them empty. */
export interface EventBatches<Event> extends Flow<readonly Event[]> {
  /** Closes the upstream connection, unless the answer is complete. */
  cancel(): void;
}

/** An open streamed answer: its first batch of events and a reader for the rest. */
export interface OpenStream<Event> {
  readonly first: readonly Event[];
  readonly rest: EventBatches<Event>;
}
