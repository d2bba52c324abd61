import type { Socket } from "bun";

/** How a caller closes its connection. */
export type Leaving = "FIN" | "RST";

/** A caller over a bare socket, which closes it in the given way and stops reading on request. */
export class LeavingCaller implements Disposable {
  readonly #socket: Socket;
  readonly #state: CallerState;
  readonly #localPort: number;

  private constructor(socket: Socket, state: CallerState) {
    this.#socket = socket;
    this.#state = state;
    this.#localPort = socket.localPort;
  }

  /** Connects and sends these bytes, which may be a part of a request. */
  static async send(port: number, bytes: string): Promise<LeavingCaller> {
    const state = new CallerState(bytes);
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open: (opened) => state.flush(opened),
        drain: (drained) => state.flush(drained),
        data: (_socket, received) => state.receive(received),
        close: () => state.close(),
        error: () => undefined,
      },
    });
    return new LeavingCaller(socket, state);
  }

  get receivedBytes(): number {
    return this.#state.receivedBytes;
  }

  get isClosed(): boolean {
    return this.#state.isClosed;
  }

  /** When either side closed the connection; NaN while it is open. */
  get closedAtMs(): number {
    return this.#state.closedAtMs;
  }

  /** The name of this connection at the server. */
  get localPort(): number {
    return this.#localPort;
  }

  /** The last bytes that came, as text. */
  get lastText(): string {
    return this.#state.lastText;
  }

  /** Resolves once this many bytes of the answer have come, or the connection is closed. */
  received(bytes: number): Promise<void> {
    return this.#state.waitFor(bytes);
  }

  /** Stops reading: further bytes fill the kernel's buffers. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  leave(how: Leaving): void {
    if (how === "FIN") this.#socket.end();
    else this.#socket.terminate();
  }

  [Symbol.dispose](): void {
    this.#socket.terminate();
  }
}

const keptBytes = 2_000;

class CallerState {
  receivedBytes = 0;
  closedAtMs = Number.NaN;
  lastText = "";
  #unsent: Uint8Array;
  #waiting: { readonly bytes: number; readonly resolve: () => void }[] = [];

  constructor(bytes: string) {
    this.#unsent = Buffer.from(bytes);
  }

  get isClosed(): boolean {
    return !Number.isNaN(this.closedAtMs);
  }

  flush(socket: Socket): void {
    if (this.#unsent.length === 0) return;
    const written = Math.max(0, socket.write(this.#unsent));
    this.#unsent = this.#unsent.subarray(written);
  }

  receive(bytes: Uint8Array): void {
    this.receivedBytes += bytes.length;
    const text = Buffer.from(bytes).toString("latin1");
    this.lastText = (this.lastText + text).slice(-keptBytes);
    this.#settle();
  }

  close(): void {
    this.closedAtMs = performance.now();
    this.#settle();
  }

  waitFor(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ bytes, resolve });
      this.#settle();
    });
  }

  #settle(): void {
    const isDone = ({ bytes }: { readonly bytes: number }): boolean =>
      this.isClosed || this.receivedBytes >= bytes;
    for (const { resolve } of this.#waiting.filter(isDone)) resolve();
    this.#waiting = this.#waiting.filter((waiter) => !isDone(waiter));
  }
}

/** A chat call as sent on the wire. */
export function chatRequest(key: string, body: unknown): string {
  const text = JSON.stringify(body);
  return (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" +
    `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

/** The value below which this part of all values lies; NaN without values. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
