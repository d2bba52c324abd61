const eventStart = Buffer.from("data: {");
const done = Buffer.from("data: [DONE]");

/** How many events begin in these bytes. */
export function countEvents(bytes: Buffer): number {
  let events = 0;
  for (let at = bytes.indexOf(eventStart); at !== -1; at = bytes.indexOf(eventStart, at + 1)) {
    events += 1;
  }
  return events;
}

/** True for the end of a whole stream. */
export function saysDone(bytes: Buffer): boolean {
  return bytes.includes(done);
}
