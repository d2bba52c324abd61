import { EventStreamCodec, type MessageHeaders } from "@smithy/eventstream-codec";
import type { AnswerContext } from "../../src/upstreams/shared/answers/answer-context.ts";

/** Frames as the provider's own codec writes them. */
const codec = new EventStreamCodec(
  (input: string | Uint8Array) =>
    typeof input === "string" ? input : new TextDecoder().decode(input),
  (text) => new TextEncoder().encode(text),
);

export function encodeFrame(headers: MessageHeaders, body: string): Uint8Array {
  return codec.encode({ headers, body: new TextEncoder().encode(body) });
}

export function decodeFrame(frame: Uint8Array): { headers: MessageHeaders; body: Uint8Array } {
  return codec.decode(frame);
}

/** An event as `["messageStop", {...}]`, or one of the two ways in which a stream fails. */
export type FrameFixture =
  | readonly [event: string, payload: object]
  | readonly [kind: "exception", name: string, payload: object]
  | readonly [kind: "error", code: string, message: string];

export function frameOf(fixture: FrameFixture): Uint8Array {
  const [kind, second, third] = fixture;
  if (typeof second !== "string") return encodeEvent(":event-type", kind, second);
  if (typeof third !== "string") return encodeEvent(":exception-type", second, third ?? {});
  return encodeFrame(
    textHeaders({ ":message-type": "error", ":error-code": second, ":error-message": third }),
    "",
  );
}

function encodeEvent(header: string, name: string, payload: object): Uint8Array {
  const messageType = header === ":event-type" ? "event" : "exception";
  const headers = textHeaders({
    [header]: name,
    ":content-type": "application/json",
    ":message-type": messageType,
  });
  return encodeFrame(headers, JSON.stringify(payload));
}

export function textHeaders(headers: Readonly<Record<string, string>>): MessageHeaders {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, { type: "string", value }]),
  );
}

export function streamOf(fixtures: readonly FrameFixture[]): Uint8Array {
  return Buffer.concat(fixtures.map(frameOf));
}

/** An `AnswerContext` as JSON can hold it. */
export interface ContextFixture {
  readonly toolNames?: Readonly<Record<string, string>>;
  readonly textTools?: readonly string[];
  readonly answerTool?: string;
  readonly usesFunctions?: boolean;
  readonly stopSequences?: readonly string[];
  readonly sentStop?: string;
}

export function contextOf(fixture: ContextFixture = {}): AnswerContext {
  return {
    toolNames: new Map(Object.entries(fixture.toolNames ?? {})),
    textTools: new Set(fixture.textTools),
    answerTool: fixture.answerTool,
    usesFunctions: fixture.usesFunctions ?? false,
    check: undefined,
    stopSequences: fixture.stopSequences ?? [],
    sentStop: fixture.sentStop,
  };
}
