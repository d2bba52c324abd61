import { createHash } from "node:crypto";
import type { CallOrigin } from "../../wires/chat/write-message.ts";
import type { OnUnknownFinish } from "../shared/finish-words.ts";

/**
 * Tool calls may have fields that only their upstream understands and needs back, such as Gemini's
 * signatures. Other servers refuse them. Callers keep the id of a call, even those that rebuild all
 * the rest, so the id of such a call gets a mark of the upstream.
 */
export class CallOrigins {
  readonly #upstream: string;

  /** `upstream`: what tells it from others, such as its address. */
  constructor(upstream: string) {
    this.#upstream = upstream;
  }

  marked(id: string): string {
    return `${id}__${this.#digest(id)}`;
  }

  read(id: string): CallOrigin {
    if (!mark.test(id)) return { id, author: "unknown" };
    const own = id.slice(0, -markLength);
    if (this.marked(own) === id) return { id: own, author: "this" };
    return { id: id.length > longestId ? own : id, author: "another" };
  }

  #digest(id: string): string {
    const hash = createHash("sha256").update(this.#upstream).update("\0").update(id);
    return hash.digest("base64url").slice(0, digestLength);
  }
}

/** In characters; OpenAI takes no longer ones. */
const longestId = 40;
const digestLength = 8;
const markLength = digestLength + 2;
const mark = /__[\w-]{8}$/;

/** What reading an answer needs from outside. */
export interface AnswerServices {
  readonly newToolCallId: () => string;
  readonly onUnknownFinish: OnUnknownFinish;
  readonly origins: CallOrigins;
}
