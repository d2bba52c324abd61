import { expect, test } from "bun:test";
import { generateApiKey } from "./keys/api-key.ts";
import { readTrace } from "./request-trace.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("a caller's id and its trace context are read, and are headers for upstreams", () => {
  const sent = { "x-request-id": "job-7/step:3", traceparent };
  expect(readTrace(new Headers(sent))).toEqual({
    callerRequestId: "job-7/step:3",
    traceparent,
    tracestate: undefined,
    headers: sent,
  });
});

test("tracestate is read only beside a valid traceparent, and only if it is one itself", () => {
  const stateOf = (headers: Record<string, string>): string | undefined =>
    readTrace(new Headers({ "x-request-id": "job", ...headers }))?.tracestate;
  expect(stateOf({ traceparent, tracestate: "vendor=1,other=a b" })).toBe("vendor=1,other=a b");
  expect(stateOf({ tracestate: "vendor=1" })).toBeUndefined();
  expect(stateOf({ traceparent, tracestate: "a".repeat(513) })).toBeUndefined();
  expect(stateOf({ traceparent, tracestate: `vendor=${key}` })).toBeUndefined();
});

test("of two ids, x-client-request-id counts, and the other one if that is not valid", () => {
  const idOf = (client: string): string | undefined =>
    readTrace(new Headers({ "x-client-request-id": client, "x-request-id": "own" }))
      ?.callerRequestId;
  expect(idOf("chosen")).toBe("chosen");
  expect(idOf("not valid")).toBe("own");
});

test("a request without either has no trace", () => {
  expect(readTrace(new Headers({ accept: "*/*" }))).toBeUndefined();
});

const { text: key } = generateApiKey((target) => crypto.getRandomValues(target));

test.each([
  ["empty", ""],
  ["too long", "a".repeat(129)],
  ["with a space", "a b"],
  ["with a quote", 'a"b'],
  ["beyond ASCII", "\u00e9"],
  ["a key of the gateway", key],
  ["a key of the gateway in other text", `id=${key}`],
  ["a management token", "slc-mgt_abc"],
])("a caller's id that is %s is dropped", (_, value) => {
  expect(readTrace(new Headers({ "x-request-id": value }))).toBeUndefined();
});

test("an id of 128 characters is the longest that is kept", () => {
  const longest = "a".repeat(128);
  expect(readTrace(new Headers({ "x-request-id": longest }))?.callerRequestId).toBe(longest);
});

test.each([
  ["without a parent id", "00-0af7651916cd43dd8448eb211c80319c-01"],
  ["of the version that is not allowed", traceparent.replace(/^00/, "ff")],
  ["in upper case", traceparent.toUpperCase()],
  ["with a trace id of zeros", `00-${"0".repeat(32)}-b7ad6b7169203331-01`],
  ["with a parent id of zeros", `00-0af7651916cd43dd8448eb211c80319c-${"0".repeat(16)}-01`],
  ["with more after it", `${traceparent}-00`],
  ["sent twice", `${traceparent}, ${traceparent}`],
])("a trace context %s is dropped", (_, value) => {
  expect(readTrace(new Headers({ traceparent: value }))).toBeUndefined();
});
