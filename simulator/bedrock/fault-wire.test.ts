import { EventStreamCodec } from "@smithy/eventstream-codec";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { parseJson, recordOf } from "../json.ts";
import { type Simulator, startSimulator } from "../simulator.ts";
import { demoApiKey } from "./credentials.ts";

/** Faults below HTTP and of encodings, where frames make a difference. */

let simulator: Simulator;
beforeAll(() => {
  simulator = startSimulator();
});
afterAll(() => simulator[Symbol.asyncDispose]());

function ask(fault: string, operation = "converse-stream", of = simulator) {
  return fetch(`${of.origin}/model/simulated-model/${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${demoApiKey}`, "x-simulator-fault": fault },
    body: JSON.stringify({ messages: [{ role: "user", content: [{ text: "count: 4" }] }] }),
  });
}

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString("utf8"),
  (text) => Buffer.from(text, "utf8"),
);

/** The types of the frames, and the rest of an incomplete last one. */
function read(stream: Buffer): { readonly types: string[]; readonly rest: number } {
  const types: string[] = [];
  let rest = stream;
  while (rest.length >= 4 && rest.length >= rest.readUInt32BE(0)) {
    const { headers } = codec.decode(rest.subarray(0, rest.readUInt32BE(0)));
    types.push(String((headers[":event-type"] ?? headers[":exception-type"])?.value));
    rest = rest.subarray(rest.readUInt32BE(0));
  }
  return { types, rest: rest.length };
}

/** The bytes until the answer ends or the connection breaks. */
async function receive(response: Response): Promise<{ bytes: Buffer; isBroken: boolean }> {
  const parts: Uint8Array[] = [];
  let isBroken = false;
  try {
    const body: ReadableStream<Uint8Array> | null = response.body;
    for await (const part of body ?? []) parts.push(part);
  } catch {
    isBroken = true;
  }
  return { bytes: Buffer.concat(parts), isBroken };
}

const wholeAnswer = [
  "messageStart",
  ...Array.from({ length: 4 }, () => "contentBlockDelta"),
  "contentBlockStop",
  "messageStop",
  "metadata",
];
const known = (types: readonly string[]): string[] =>
  types.filter((type) => type !== "contentBlockNote");

test("a stream that is cut ends after a whole frame", async () => {
  const { bytes, isBroken } = await receive(await ask("cut-mid-chunk"));
  expect(isBroken).toBe(true);
  // The reader may lose bytes that came with the end of the connection.
  const { types } = read(bytes);
  expect(types.length).toBeLessThanOrEqual(3);
  expect(types).toEqual(wholeAnswer.slice(0, types.length));
});

test.each([
  ["truncated-frame", wholeAnswer.slice(0, 3), false],
  ["no-message-stop", wholeAnswer.slice(0, 6), true],
  ["mid-stream-throttling", [...wholeAnswer.slice(0, 3), "throttlingException"], true],
  ["random-splits:5", wholeAnswer, true],
])("a stream with %s ends cleanly", async (fault, expected, isWhole) => {
  const response = await ask(fault);
  expect(response.status).toBe(200);
  const { bytes, isBroken } = await receive(response);
  const { types, rest } = read(bytes);
  expect(known(types)).toEqual(expected);
  expect({ isWhole: rest === 0, isBroken }).toEqual({ isWhole, isBroken: false });
});

test("gzip-bomb is mebibytes of unknown events before the answer", async () => {
  const { bytes } = await receive(await ask("gzip-bomb:3"));
  expect(bytes.length).toBeGreaterThan(3 * 1024 * 1024);
  const { types, rest } = read(bytes);
  expect(types.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => "contentBlockNote"));
  expect(known(types)).toEqual(wholeAnswer);
  expect(rest).toBe(0);
});

test("gzip-bomb of a whole answer is white space before its JSON", async () => {
  const text = await (await ask("gzip-bomb:3", "converse")).text();
  expect(text.length).toBeGreaterThan(3 * 1024 * 1024);
  expect(recordOf(parseJson(text))["stopReason"]).toBe("end_turn");
});

test("a quota throttles requests above its limit", async () => {
  const bedrock = { quotas: { models: { "simulated-model": { requestsPerMinute: 1 } } } };
  await using limited = startSimulator({ bedrock });
  expect((await receive(await ask("ok", "converse-stream", limited))).isBroken).toBe(false);
  const refused = await ask("ok", "converse-stream", limited);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toEqual({
    message: "Too many requests, please wait before trying again.",
  });
});
