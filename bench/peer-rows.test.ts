import { expect, test } from "bun:test";
import type { Figure } from "./figure.ts";
import { ratios } from "./figures/compare.ts";
import { describeMachine } from "./machine.ts";
import { peerRows } from "./peer-rows.ts";

const rounds = [
  {
    nginx: 10,
    sluice: 40,
    peers: new Map([
      ["fast", 20],
      ["lost", 5],
    ]),
  },
  { nginx: 20, sluice: 60, peers: new Map([["fast", 60]]) },
];

const call: Figure = { name: "calls.cpu", title: "a call", unit: "us", ...ratios(rounds) };
const first: Figure = { name: "crowd.first_p99", title: "first", unit: "ms", nginx: 1, sluice: 2 };

test("a gateway has its median and the median of its ratios to nginx", () => {
  expect(rowsOf([call])).toEqual([
    ["gateway", "call, us", "x nginx"],
    ["nginx", "15.00", "1.00"],
    ["Sluice", "50.00", "3.50"],
    ["fast", "40.00", "2.50"],
    ["lost", "-", "-"],
  ]);
});

test("a figure that a run did not measure has no column", () => {
  const [heading] = rowsOf([first]);
  expect(heading).toEqual(["gateway", "crowd: first p99, ms"]);
});

function rowsOf(figures: readonly Figure[]): readonly (readonly string[])[] {
  const peers = ["fast", "lost"].map((name) => ({ name, notes: "none" }));
  return peerRows({ plan: "quick", machine: describeMachine(), figures, peers });
}
