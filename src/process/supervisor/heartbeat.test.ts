import { expect, test } from "bun:test";
import { ManualTimers } from "../../../test/support/manual-timers.ts";
import { Heartbeat } from "./heartbeat.ts";

test("a process is reported once when it has left ten requests in a row without an answer", () => {
  const clock = new ManualTimers();
  const seen: string[] = [];
  const heartbeat = new Heartbeat({
    clock,
    ask: () => void seen.push("asked"),
    onSilent: () => void seen.push("silent"),
  });
  for (let count = 0; count < 100; count += 1) {
    heartbeat.answered();
    clock.advance(1_000);
  }
  expect(seen).not.toContain("silent");
  clock.advance(100_000);
  expect(seen.filter((one) => one === "silent")).toHaveLength(1);
  expect(seen.slice(-11)).toEqual([...Array.from({ length: 10 }, () => "asked"), "silent"]);
});
