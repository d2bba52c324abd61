import { createHash } from "node:crypto";
import type { VirtualTime } from "./virtual-time.ts";

export interface LogLine {
  readonly atMs: number;
  /** The call of the event; undefined if it concerns all. */
  readonly call: string | undefined;
  readonly text: string;
}

/** All events of a run in order; two runs of one seed have the same digest. */
export class EventLog {
  readonly #time: VirtualTime;
  readonly #hash = createHash("sha1");
  readonly #lines: LogLine[] | undefined;
  #pending = "";
  #isRead = false;

  constructor(time: VirtualTime, keepsLines: boolean) {
    this.#time = time;
    this.#lines = keepsLines ? [] : undefined;
  }

  get lines(): readonly LogLine[] {
    return this.#lines ?? [];
  }

  note(text: string, call?: string): void {
    if (this.#isRead) return;
    const atMs = this.#time.now;
    this.#pending += `${atMs} ${call ?? "-"} ${text}\n`;
    if (this.#pending.length > 4_096) this.#digest();
    this.#lines?.push({ atMs, call, text });
  }

  /** Can be read once, at the end; what happens afterwards is not noted. */
  digest(): string {
    this.#isRead = true;
    this.#digest();
    return this.#hash.digest("hex").slice(0, 16);
  }

  #digest(): void {
    this.#hash.update(this.#pending);
    this.#pending = "";
  }
}
