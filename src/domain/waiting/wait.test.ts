import { expect, test } from "bun:test";
import { abortable } from "./wait.ts";

test("a promise that settles first keeps its result", async () => {
  const { signal } = new AbortController();
  expect(await abortable(Promise.resolve(7), signal)).toBe(7);
  expect(abortable(Promise.reject(new Error("own")), signal)).rejects.toThrow("own");
});

test("the signal ends the wait, also when it has fired before", async () => {
  const never = new Promise<void>(() => undefined);
  const gone = AbortSignal.abort(new Error("left"));
  expect(abortable(never, gone)).rejects.toThrow("left");
  const controller = new AbortController();
  const waiting = abortable(never, controller.signal);
  controller.abort(new Error("left later"));
  expect(waiting).rejects.toThrow("left later");
  await Promise.resolve();
});
