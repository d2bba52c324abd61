import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { createLogger } from "./logger.ts";
import { Outage } from "./outage.ts";

function start() {
  const clock = new ManualClock();
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const logger = createLogger({ level: "debug", format: "json", clock, write });
  const outage = new Outage({ logger, clock }, { begins: "it fails", ends: "it works again" });
  return { clock, outage, logged: () => lines.map((line): unknown => JSON.parse(line)) };
}

test("an outage is logged at its start and once a minute, not at every failure", () => {
  const { clock, outage, logged } = start();
  for (let second = 0; second < 150; second += 1) {
    outage.failed(new Error("full"), { second });
    clock.advance(1_000);
  }
  expect(logged()).toMatchObject([0, 60, 120].map((second) => ({ message: "it fails", second })));
});

test("the end of an outage is logged once with its duration; the next one starts over", () => {
  const { clock, outage, logged } = start();
  outage.recovered();
  outage.failed(undefined);
  clock.advance(3_000);
  outage.recovered();
  outage.recovered();
  outage.failed(undefined);
  expect(logged()).toEqual([
    expect.objectContaining({ level: "error", message: "it fails" }),
    expect.objectContaining({ level: "info", message: "it works again", afterMs: 3_000 }),
    expect.objectContaining({ level: "error", message: "it fails" }),
  ]);
});
