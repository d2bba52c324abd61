import { expect, test } from "bun:test";
import { ManualTimers } from "../../../test/support/manual-timers.ts";
import { LinkLost } from "../link/link-errors.ts";
import { ControlOutage } from "./control-outage.ts";

function outageOf() {
  const timers = new ManualTimers();
  const seen: string[] = [];
  const events = {
    controlLost: () => void seen.push("lost"),
    controlBack: () => void seen.push("back"),
    controlReplaced: () => void seen.push("replaced"),
  };
  return { outage: new ControlOutage({ clock: timers, events: () => events }), timers, seen };
}

const reason = new LinkLost("the other process has closed the link");

test("a control process that ends is reported at once", () => {
  const { outage, seen } = outageOf();
  outage.lost(reason, false);
  expect(seen).toEqual(["lost"]);
  outage.back();
  expect(seen).toEqual(["lost", "back"]);
});

test("one that is replaced is reported once, when the other has taken over", () => {
  const { outage, timers, seen } = outageOf();
  outage.lost(reason, true);
  expect(seen).toEqual([]);
  outage.back();
  timers.advance(60_000);
  expect(seen).toEqual(["replaced"]);
});

test("one that is replaced by none is reported as gone", () => {
  const { outage, timers, seen } = outageOf();
  outage.lost(reason, true);
  timers.advance(60_000);
  outage.back();
  expect(seen).toEqual(["lost", "back"]);
});
