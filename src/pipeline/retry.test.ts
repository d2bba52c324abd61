import { expect, test } from "bun:test";
import type { UpstreamFailureKind } from "../domain/upstream-failure.ts";
import { decideRetry, type RetryDecision } from "./retry.ts";

const afterFirstTry: Readonly<Record<UpstreamFailureKind, RetryDecision>> = {
  throttled: "next-target",
  overloaded: "next-target",
  unavailable: "next-target",
  "connect-failed": "next-target",
  "timed-out": "next-target",
  "connection-lost": "same-target",
  "broken-answer": "next-target",
  "bad-credential": "next-target",
  "stale-credential": "same-target",
  unsupported: "next-target",
  "unknown-model": "next-target",
  "context-overflow": "give-up",
  "invalid-request": "give-up",
  "content-refused": "give-up",
};

const kinds = Object.entries(afterFirstTry).map(([kind, decision]) => ({ kind, decision }));

test.each(kinds)("after $kind: $decision", ({ kind, decision }) => {
  expect(decideRetry(kind as UpstreamFailureKind, 1)).toBe(decision);
});

test("no target is asked a third time, and only a lost connection makes it a second", () => {
  for (const { kind, decision } of kinds) {
    const second = decideRetry(kind as UpstreamFailureKind, 2);
    expect(second).toBe(decision === "give-up" ? "give-up" : "next-target");
  }
});
