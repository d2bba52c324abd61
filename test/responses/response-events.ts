import { expect } from "bun:test";
import { type JsonObject, objectOf } from "../../src/domain/json-fields.ts";

/** The events of a streamed response, each checked to be named by its type and numbered. */
export function eventsIn(stream: string): readonly JsonObject[] {
  const frames = stream.split("\n\n").filter((frame) => frame.startsWith("event: "));
  const events = frames.map((frame) => {
    const [name, data = ""] = frame.split("\n");
    const event = objectOf(JSON.parse(data.slice("data: ".length))) ?? {};
    expect(name).toBe(`event: ${String(event["type"])}`);
    return event;
  });
  expect(events.map(({ sequence_number: number }) => number)).toEqual([...events.keys()]);
  return events;
}

export function typesOf(events: readonly JsonObject[]): readonly unknown[] {
  const types = events.map(({ type }) => type);
  // A text may come in any number of pieces.
  return types.filter((type, index) => type !== types[index - 1]);
}

/** The response of the last event. */
export function responseOf(events: readonly JsonObject[]): JsonObject {
  return objectOf(events.at(-1)?.["response"]) ?? {};
}
