import { EventStreamCodec } from "@smithy/eventstream-codec";
import { describe, expect, test } from "bun:test";
import {
  encodeFrame,
  encodePrelude,
  errorFrame,
  eventFrame,
  exceptionFrame,
} from "./event-frames.ts";

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString("utf8"),
  (text) => Buffer.from(text, "utf8"),
);

function decoded(frame: Uint8Array) {
  const { headers, body } = codec.decode(frame);
  const values = Object.entries(headers).map(([name, { value }]) => [name, value]);
  return { headers: Object.fromEntries(values), body: Buffer.from(body).toString("utf8") };
}

describe("an independent decoder", () => {
  test("reads every type of header that frames can carry", () => {
    const headers = {
      text: "ключ ✓",
      yes: true,
      no: false,
      integer: -5,
      bytes: new Uint8Array([1, 2, 255]),
    };
    const frame = encodeFrame({ ...headers, long: -1n }, new TextEncoder().encode("päyload"));
    const { headers: read, body } = decoded(frame);
    expect(read).toMatchObject(headers);
    expect(String(read.long)).toBe("-1");
    expect(body).toBe("päyload");
  });

  test("accepts the smallest possible frame", () => {
    const frame = encodeFrame({}, new Uint8Array(0));
    expect(frame).toHaveLength(16);
    expect(decoded(frame)).toEqual({ headers: {}, body: "" });
  });

  test("finds events, exceptions and errors by their headers", () => {
    expect(decoded(eventFrame("messageStart", '{"role":"assistant"}'))).toEqual({
      headers: {
        ":event-type": "messageStart",
        ":content-type": "application/json",
        ":message-type": "event",
      },
      body: '{"role":"assistant"}',
    });
    expect(decoded(exceptionFrame("throttlingException", '{"message":"m"}'))).toEqual({
      headers: {
        ":exception-type": "throttlingException",
        ":content-type": "application/json",
        ":message-type": "exception",
      },
      body: '{"message":"m"}',
    });
    expect(decoded(errorFrame("InternalError", "lost"))).toEqual({
      headers: {
        ":error-code": "InternalError",
        ":error-message": "lost",
        ":message-type": "error",
      },
      body: "",
    });
  });

  test("refuses a frame with any one byte flipped", () => {
    const frame = eventFrame("contentBlockDelta", '{"delta":{"text":"x"}}');
    for (let index = 0; index < frame.length; index++) {
      const broken = frame.slice();
      broken[index] = (broken[index] ?? 0) ^ 0x10;
      expect(() => decoded(broken)).toThrow();
    }
  });
});

test("a prelude alone is the beginning of the frame with these lengths", () => {
  const frame = encodeFrame({ a: "b" }, new Uint8Array([1, 2, 3]));
  expect(encodePrelude(frame.length, 6 - 1)).not.toEqual(frame.slice(0, 12));
  expect(encodePrelude(frame.length, 1 + 1 + 1 + 2 + 1)).toEqual(frame.slice(0, 12));
});
