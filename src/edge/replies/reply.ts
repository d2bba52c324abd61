/** The answer of a handler; `edge/dispatch` adds the headers that every response has. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Values of the header `set-cookie`, one line each. */
  readonly cookies?: readonly string[] | undefined;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
}

export function jsonReply(value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return jsonTextReply(JSON.stringify(value), headers);
}

/** `body` is a JSON text, or its bytes. */
export function jsonTextReply(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
): Reply {
  return { status: 200, headers: { "content-type": "application/json", ...headers }, body };
}

export function textReply(status: number, body: string): Reply {
  return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body };
}
