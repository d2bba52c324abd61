import { expect, test } from "bun:test";
import { UnreadStreams } from "./unread-streams.ts";

function isRefused(streams: UnreadStreams, account: string): boolean {
  try {
    streams.check(account, 120);
    return false;
  } catch {
    return true;
  }
}

test("accounts share the memory equally, and one share is left for the next", () => {
  const streams = new UnreadStreams();
  streams.change("a", 59);
  expect(isRefused(streams, "a")).toBeFalse();
  streams.change("a", 1);
  expect([isRefused(streams, "a"), isRefused(streams, "b")]).toEqual([true, false]);
  streams.change("b", 39);
  expect([isRefused(streams, "a"), isRefused(streams, "b")]).toEqual([true, false]);
  streams.change("b", 1);
  expect([isRefused(streams, "b"), isRefused(streams, "c")]).toEqual([true, false]);
  streams.change("a", -60);
  expect([isRefused(streams, "a"), isRefused(streams, "b")]).toEqual([false, false]);
});
