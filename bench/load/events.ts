const eventStart = Buffer.from("data: {");
const done = Buffer.from("data: [DONE]");

/** The number of events that begin in these bytes. */
export function countEvents(bytes: Buffer): number {
  let events = 0;
  for (let at = bytes.indexOf(eventStart); at !== -1; at = bytes.indexOf(eventStart, at + 1)) {
    events += 1;
  }
  return events;
}

/** True for the end of a complete stream. */
export function saysDone(bytes: Buffer): boolean {
  return bytes.includes(done);
}
