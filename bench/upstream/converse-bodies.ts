import { crc32 } from "node:zlib";
import { content, type StreamFrames } from "./bodies.ts";

/** The answers of `bodies.ts` in the wire format of Bedrock's Converse. */

const usage = { inputTokens: 24, outputTokens: 30, totalTokens: 54 };
/** Every event of the provider has random padding; this is its usual length. */
const padding = "abcdefghijklmnopqrstuvwxyz";

export function converseBody(): string {
  return JSON.stringify({
    output: { message: { role: "assistant", content: [{ text: content }] } },
    stopReason: "end_turn",
    usage,
    metrics: { latencyMs: 700 },
  });
}

export function converseFrames(): StreamFrames {
  const event = (type: string, payload: object): Buffer => frame(type, { ...payload, p: padding });
  return {
    first: event("messageStart", { role: "assistant" }),
    text: event("contentBlockDelta", { contentBlockIndex: 0, delta: { text: " answer" } }),
    last: Buffer.concat([
      event("contentBlockStop", { contentBlockIndex: 0 }),
      event("messageStop", { stopReason: "end_turn" }),
      event("metadata", { usage, metrics: { latencyMs: 700 } }),
    ]),
  };
}

/** One message of `application/vnd.amazon.eventstream`. */
function frame(eventType: string, payload: object): Buffer {
  const headers = Buffer.concat([
    header(":event-type", eventType),
    header(":content-type", "application/json"),
    header(":message-type", "event"),
  ]);
  const body = Buffer.from(JSON.stringify(payload));
  const message = Buffer.alloc(16 + headers.length + body.length);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(headers.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  headers.copy(message, 12);
  body.copy(message, 12 + headers.length);
  message.writeUInt32BE(crc32(message.subarray(0, message.length - 4)), message.length - 4);
  return message;
}

function header(name: string, value: string): Buffer {
  const bytes = Buffer.from(value);
  const head = Buffer.from([name.length, ...Buffer.from(name), 7, 0, bytes.length]);
  return Buffer.concat([head, bytes]);
}
