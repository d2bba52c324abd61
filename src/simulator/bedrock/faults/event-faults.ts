import type { Fault, FaultMode } from "../../faults/fault-mode.ts";
import { inflatedUsage } from "../../faults/inflated-usage.ts";
import { recordOf } from "../../read-json.ts";
import type { StreamEvent } from "../reply/stream-events.ts";

/** Omits, repeats or falsifies events, depending on the fault. */
export function withEventFault(
  events: Iterable<StreamEvent>,
  { mode }: Fault,
): Iterable<StreamEvent> {
  const replace = eventFaults[mode];
  return replace === undefined ? events : Iterator.from(events).flatMap(replace);
}

/** Returns what the caller gets in place of an event. */
type EventFault = (event: StreamEvent) => readonly StreamEvent[];

const eventFaults: Readonly<Partial<Record<FaultMode, EventFault>>> = {
  "ok-no-usage": (event) => [withoutUsage(event)],
  "wrong-usage": (event) => [withWrongUsage(event)],
  "usage-twice": (event) => (event.type === "metadata" ? [event, event] : [event]),
  "missing-finish-reason": (event) => (event.type === "messageStop" ? [] : [event]),
  "no-message-stop": (event) =>
    event.type === "messageStop" || event.type === "metadata" ? [] : [event],
  "no-metadata": (event) => (event.type === "metadata" ? [] : [event]),
  "no-done": (event) => (event.type === "metadata" ? [] : [event]),
  "role-every-chunk": (event) =>
    event.type === "contentBlockDelta" ? [messageStart, event] : [event],
};

const messageStart: StreamEvent = { type: "messageStart", body: { role: "assistant" }, tokens: 0 };

function withoutUsage(event: StreamEvent): StreamEvent {
  const { usage, ...body } = event.body;
  return usage === undefined ? event : { ...event, body };
}

function withWrongUsage(event: StreamEvent): StreamEvent {
  const { usage } = event.body;
  if (usage === undefined) return event;
  return { ...event, body: { ...event.body, usage: inflatedUsage(recordOf(usage)) } };
}
