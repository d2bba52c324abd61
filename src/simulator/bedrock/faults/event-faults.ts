import type { Fault, FaultMode } from "../../faults/fault-mode.ts";
import { inflatedUsage } from "../../faults/inflated-usage.ts";
import { recordOf } from "../../read-json.ts";
import type { StreamEvent } from "../reply/stream-events.ts";

/** Events left out, repeated or wrong, as the fault says. */
export function spoilEvents(events: Iterable<StreamEvent>, { mode }: Fault): Iterable<StreamEvent> {
  const spoil = eventFaults[mode];
  return spoil === undefined ? events : replaced(events, spoil);
}

/** What the caller gets in place of an event. */
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

function* replaced(events: Iterable<StreamEvent>, spoil: EventFault): Iterable<StreamEvent> {
  for (const event of events) yield* spoil(event);
}

function withoutUsage(event: StreamEvent): StreamEvent {
  const { usage, ...body } = event.body;
  return usage === undefined ? event : { ...event, body };
}

function withWrongUsage(event: StreamEvent): StreamEvent {
  const { usage } = event.body;
  if (usage === undefined) return event;
  return { ...event, body: { ...event.body, usage: inflatedUsage(recordOf(usage)) } };
}
