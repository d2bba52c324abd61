import { expect, test } from "bun:test";
import { FaultChooser, faultInModelName, faultModes, noFault, parseFault } from "./fault-modes.ts";

test("every fault is found in a model's name, with and without an argument", () => {
  for (const name of Object.keys(faultModes)) {
    const mode = parseFault(name)?.mode;
    expect(mode).toBeDefined();
    expect<unknown>(faultInModelName(`fault-${name}`)).toEqual({ mode, argument: undefined });
    expect<unknown>(faultInModelName(`my-fault-${name}-70`)).toEqual({ mode, argument: 70 });
    expect(parseFault(`${name}:12`)?.argument).toBe(12);
  }
});

test("model names that only resemble faults are none", () => {
  expect(faultInModelName("default-model")).toBeUndefined();
  expect(faultInModelName("fault-unheard-of")).toBeUndefined();
  expect(faultInModelName("fault-resets")).toBeUndefined();
  expect(parseFault("reset:soon")).toBeUndefined();
});

test("the header has priority over the model's name, and that over the plan", () => {
  const chooser = new FaultChooser();
  chooser.setPlan([{ mode: "error-500" }]);
  expect(chooser.choose("no-done", "fault-reset")?.mode).toBe("no-done");
  expect(chooser.choose(null, "fault-reset")?.mode).toBe("reset");
  expect(chooser.choose(null, "m")?.mode).toBe("error-500");
  expect(chooser.choose(null, "m")).toEqual(noFault);
  expect(chooser.choose("unheard-of", "m")).toBeUndefined();
});

test("each step of a plan applies to its number of calls", () => {
  const chooser = new FaultChooser();
  chooser.setPlan([
    { mode: "reset", times: 2 },
    { mode: "ok", times: 0 },
    { mode: "stall-mid", argument: 5 },
  ]);
  const chosen = Array.from({ length: 4 }, () => chooser.choose(null, "m"));
  expect(chosen.map((fault) => fault?.mode)).toEqual(["reset", "reset", "stall-mid", "ok"]);
  expect(chosen[2]?.argument).toBe(5);
});

test("an endless fault stays until there is another plan", () => {
  const chooser = new FaultChooser();
  chooser.setPlan([{ mode: "overloaded-503", times: Number.POSITIVE_INFINITY }]);
  for (let call = 0; call < 10_000; call += 1) {
    expect(chooser.choose(null, "m")?.mode).toBe("overloaded-503");
  }
  chooser.setPlan([]);
  expect(chooser.choose(null, "m")).toEqual(noFault);
});

test("a share of the calls is exact and evenly spread", () => {
  const chooser = new FaultChooser();
  for (const [share, between] of [
    [0.1, 10],
    [0.25, 4],
    [1, 1],
  ] as const) {
    chooser.setPlan([{ mode: "reset", times: Number.POSITIVE_INFINITY, share }]);
    const modes = Array.from({ length: 1_000 }, () => chooser.choose(null, "m")?.mode);
    const places = [...modes.keys()].filter((place) => modes[place] === "reset");
    expect(places).toHaveLength(share * 1_000);
    expect(places.every((place) => place % between === between - 1)).toBe(true);
  }
});

test("a step with a share also counts calls without a fault", () => {
  const chooser = new FaultChooser();
  chooser.setPlan([{ mode: "reset", times: 4, share: 0.5 }, { mode: "error-500" }]);
  const modes = Array.from({ length: 6 }, () => chooser.choose(null, "m")?.mode);
  expect(modes).toEqual(["ok", "reset", "ok", "reset", "error-500", "ok"]);
});

test("flapping alternates for each model separately", () => {
  const chooser = new FaultChooser();
  const modes = ["a", "a", "b", "a", "b"].map((model) => chooser.choose("flap", model)?.mode);
  expect(modes).toEqual(["ok", "overloaded-503", "ok", "ok", "overloaded-503"]);
});

test("a burst refuses the first calls of each model, as many as its argument", () => {
  const chooser = new FaultChooser();
  const modes = ["a", "a", "b", "a", "b", "b", "a"].map(
    (model) => chooser.choose("throttled-burst:2", model)?.mode,
  );
  const refused = "throttle-429-bare";
  expect(modes).toEqual([refused, refused, refused, "ok", refused, "ok", "ok"]);
  const unnumbered = Array.from({ length: 5 }, () => chooser.choose("throttled-burst", "c")?.mode);
  expect(unnumbered).toEqual([refused, refused, refused, "ok", "ok"]);
});
