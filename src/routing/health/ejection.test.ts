import { expect, test } from "bun:test";
import { SlowStart } from "./ejection.ts";

test("each answer allows one more attempt, so that they double per round trip", () => {
  const start = new SlowStart(0, true);
  const rounds: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    let entered = 0;
    while (start.hasRoom) {
      start.enter();
      entered += 1;
    }
    rounds.push(entered);
    for (let attempt = 0; attempt < entered; attempt += 1) {
      start.answered();
      start.leave();
    }
  }
  expect(rounds).toEqual([1, 2, 4, 8]);
});

test("an unanswered attempt does not allow another", () => {
  const start = new SlowStart(0, true);
  start.enter();
  expect(start.hasRoom).toBe(false);
  start.leave();
  start.enter();
  expect(start.hasRoom).toBe(false);
});

test("it ends after ten answers and one completed attempt, or after ten seconds", () => {
  const start = new SlowStart(1_000, true);
  for (let answer = 0; answer < 10; answer += 1) start.answered();
  expect(start.isOver(1_000)).toBe(false);
  start.endedWell();
  expect(start.isOver(1_000)).toBe(true);
  expect(new SlowStart(1_000, true).isOver(10_999)).toBe(false);
  expect(new SlowStart(1_000, true).isOver(11_000)).toBe(true);
});
