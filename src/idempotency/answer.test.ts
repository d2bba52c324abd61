import { expect, test } from "bun:test";
import { replayedStream } from "./answer.ts";

const frames = Array.from({ length: 2_000 }, (_, index) => `data: {"n":${index}}\n\n`);
const text = frames.join("");

function replay() {
  let unread = 0;
  const kept = { headers: { "content-type": "text/event-stream" }, isStreamed: true, text };
  const { headers, frames: source } = replayedStream(kept, (bytes) => void (unread += bytes));
  return { headers, source, unread: () => unread };
}

test("a stream is replayed in whole frames, and says how much of it is unread", () => {
  const { headers, source, unread } = replay();
  expect(headers).toEqual({ "content-type": "text/event-stream", "idempotent-replayed": "true" });
  expect(unread()).toBe(text.length);
  const pieces: string[] = [];
  while (!source.isOver) pieces.push(source.take() ?? "");
  expect(pieces.length).toBeGreaterThan(1);
  expect(pieces.every((piece) => piece.endsWith("\n\n"))).toBe(true);
  expect(pieces.join("")).toBe(text);
  source.cancel();
  expect(unread()).toBe(0);
});

test("a replay that its caller leaves is no longer unread", () => {
  const { source, unread } = replay();
  source.take();
  expect(unread()).toBeLessThan(text.length);
  source.cancel();
  source.cancel();
  expect([unread(), source.isOver, source.take()]).toEqual([0, true, undefined]);
});
