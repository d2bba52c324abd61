import type { ResponseHead } from "../../src/upstream-client/http/answer/response-head.ts";
import { ResponseReader } from "../../src/upstream-client/http/answer/response-reader.ts";

export interface ReadAnswer {
  readonly status: number | undefined;
  readonly headers: ResponseHead["headers"] | undefined;
  /** As Latin-1. */
  readonly body: string;
  readonly pieces: readonly string[];
  readonly isOver: boolean;
  readonly isSurplus: boolean;
  readonly keepsOpen: boolean;
  /** The message of the refusal. */
  readonly error: string | undefined;
}

/** Reads an answer that comes in these parts; `isClosed`: then the connection closes in order. */
export function answerOf(
  parts: readonly (string | Uint8Array)[],
  { isClosed = false }: { readonly isClosed?: boolean },
): ReadAnswer {
  const pieces: string[] = [];
  let head: ResponseHead | undefined;
  let ends = 0;
  let error: string | undefined;
  let isSurplus = false;
  const reader = new ResponseReader();
  reader.begin({
    onHead: (read) => void (head = read),
    onBody: (bytes) => void pieces.push(Buffer.from(bytes).toString("latin1")),
    onEnd: () => void (ends += 1),
  });
  try {
    for (const part of parts) {
      const wasOver = ends > 0;
      reader.push(typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part));
      isSurplus ||= wasOver && part.length > 0;
    }
    if (isClosed && ends === 0) reader.close();
  } catch (thrown) {
    if (!(thrown instanceof Error) || thrown.name !== "ProtocolError") throw thrown;
    error = thrown.message;
  }
  if (ends > 1) throw new Error("an answer ended more than once");
  return {
    status: head?.status,
    headers: head?.headers,
    body: pieces.join(""),
    pieces,
    isOver: ends > 0,
    isSurplus:
      isSurplus ||
      (ends > 0 && head?.keepsOpen === true && !reader.keepsOpen && head.body !== "until-close"),
    keepsOpen: reader.keepsOpen,
    error,
  };
}

/** Every byte by itself. */
export function splits(text: string): readonly string[] {
  return Array.from(text);
}
