export interface LiveEvent {
  readonly id: number;
  readonly event: string;
  /** Items by topic and id; null for one that is gone. */
  readonly data: Readonly<Record<string, Readonly<Record<string, Record<string, unknown> | null>>>>;
}

/** Reads the events of a live stream one by one; undefined at its end. */
export function liveReader(response: Response) {
  const reader = (response.body ?? new ReadableStream()).getReader();
  const decoder = new TextDecoder();
  let text = "";
  return {
    async next(): Promise<LiveEvent | undefined> {
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end !== -1) {
          const frame = text.slice(0, end);
          text = text.slice(end + 2);
          if (frame.startsWith(":")) continue;
          return eventIn(frame);
        }
        const { done, value } = await reader.read();
        if (done) return undefined;
        text += decoder.decode(value as Uint8Array, { stream: true });
      }
    },
    leave: () => reader.cancel(),
  };
}

function eventIn(frame: string): LiveEvent {
  const fields = new Map(
    frame.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]),
  );
  const data = JSON.parse(fields.get("data") ?? "{}") as LiveEvent["data"];
  return { id: Number(fields.get("id")), event: fields.get("event") ?? "", data };
}
