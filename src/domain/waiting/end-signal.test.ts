import { expect, test } from "bun:test";
import { anyOf, endingWith, EndSource, toAbortSignal } from "./end-signal.ts";

test("listeners are called once, with the reason known, except those that were removed", () => {
  const source = new EndSource();
  const heard: unknown[] = [];
  const removed = (): void => void heard.push("removed");
  source.addEventListener("abort", () => heard.push(source.reason));
  source.addEventListener("abort", removed);
  source.addEventListener("abort", () => heard.push("second"));
  source.removeEventListener("abort", removed);
  source.removeEventListener("abort", removed);
  expect(source.aborted).toBe(false);
  source.abort("left");
  source.abort("again");
  expect([source.aborted, source.reason, heard]).toEqual([true, "left", ["left", "second"]]);
});

test("a listener may remove another one or itself, and end the source again", () => {
  const source = new EndSource();
  const heard: string[] = [];
  const self = (): void => {
    source.removeEventListener("abort", self);
    source.abort("again");
    heard.push("self");
  };
  source.addEventListener("abort", self);
  source.addEventListener("abort", () => heard.push("next"));
  source.abort("left");
  expect(heard).toEqual(["self", "next"]);
});

test("its signal of the runtime fires with the same reason, also when it is made afterwards", () => {
  const before = new EndSource();
  const { abortSignal } = before;
  expect(abortSignal.aborted).toBe(false);
  before.abort("left");
  const after = new EndSource();
  after.abort("gone");
  expect([abortSignal.reason, toAbortSignal(before)]).toEqual(["left", abortSignal]);
  expect(toAbortSignal(after).reason).toBe("gone");
});

test("the first of several ends them", () => {
  const own = new EndSource();
  const runtime = new AbortController();
  const either = anyOf(own, runtime.signal);
  own.abort("own");
  runtime.abort("runtime");
  expect(either.reason).toBe("own");
});

test("a signal that ends with another one ends with its reason, or before it", () => {
  const call = new EndSource();
  const [first, second] = [endingWith(call), endingWith(call)];
  first.abort("beaten");
  expect([first.reason, second.aborted, call.aborted]).toEqual(["beaten", false, false]);
  call.abort("left");
  expect([first.reason, second.reason]).toEqual(["beaten", "left"]);
  expect(endingWith(call).reason).toBe("left");
});
