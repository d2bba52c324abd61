/**
 * A body with what changes from call to call replaced by fixed values, as text: comparing text
 * holds an answer to the order of its keys too.
 */
export function normalise(body: string): string {
  return body
    .replace(/"id":"chatcmpl-[0-9a-f]{32}"/g, '"id":"ID"')
    .replace(/"id":"call_[0-9A-Za-z_]+"/g, '"id":"CALL"')
    .replace(/"created":1[0-9]{9}\b/g, '"created":0')
    .replace(/"(\w+_tokens)":[1-9][0-9]*/g, '"$1":9');
}

/** A stream with nothing replaced but the answer's id and its time. */
export function withoutIdAndTime(stream: string): string {
  return stream
    .replaceAll(/"id":"chatcmpl-[0-9a-f]{32}"/g, '"id":"ID"')
    .replaceAll(/"created":1[0-9]{9}\b/g, '"created":0');
}

/** The `data:` lines of a stream, normalised; fails for anything else that stands in it. */
export function dataLines(stream: string): readonly string[] {
  const events = stream.split("\n\n");
  if (events.pop() !== "") throw new Error("the stream does not end with an empty line");
  return events.map((event) => {
    if (!event.startsWith("data: ") || event.includes("\n")) throw new Error(`not data: ${event}`);
    return normalise(event.slice(6));
  });
}
