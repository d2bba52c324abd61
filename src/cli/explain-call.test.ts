import { expect, test } from "bun:test";
import { formatCall } from "./explain-call.ts";

test("times of a call are told in as many digits as people read", () => {
  const call = { outcome: "completed", duration_ms: 1234.5678, first_event_ms: 5.23456 };
  expect(formatCall(call)).toContain("1235 ms, first event after 5.2 ms");
  expect(formatCall({ ...call, first_event_ms: null })).toContain("first event after -");
});
