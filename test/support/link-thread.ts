import { systemClock } from "../../src/domain/clock.ts";
import { type Message, ThreadLink } from "../../src/process/thread-link.ts";
import { RefusedRows } from "../../src/store/errors.ts";

declare const self: Worker;

/** What the thread of the test of thread links can be asked. */
export type ThreadAsked = {
  readonly note: { readonly ask: ReadonlyMap<string, number> };
  readonly notes: { readonly ask: undefined; readonly answer: readonly unknown[] };
  /** Asks back. */
  readonly greet: { readonly ask: string; readonly answer: string };
  readonly refuse: { readonly ask: string; readonly answer: void };
  /** Gets no answer. */
  readonly never: { readonly ask: undefined; readonly answer: void };
};
export type ThreadTold = { readonly hello: { readonly ask: string; readonly answer: string } };

/* A thread with the other end of a link. */
const notes: unknown[] = [];
const link = new ThreadLink<ThreadTold, ThreadAsked>(
  {
    post: (value) => self.postMessage(value),
    listen: (hear) => (self.onmessage = ({ data }: MessageEvent<Message>) => hear(data)),
  },
  systemClock,
);
link.handle({
  note: (note) => void notes.push(note),
  notes: () => notes,
  greet: (name) => link.ask("hello", name),
  refuse(message) {
    throw new RefusedRows(message);
  },
  never: () => new Promise(() => undefined),
});
