import type {
  Transport,
  TransportReader,
  TransportResponse,
} from "../../src/upstream-client/transport.ts";
import type { Attempt } from "./records.ts";
import type { Script } from "./upstream-answer.ts";
import type { ProcessClock } from "./virtual-time.ts";

export interface ConnectionOptions {
  readonly attempt: Attempt;
  readonly script: Script;
  /** The process that sent the request; nothing reaches an ended one. */
  readonly clock: ProcessClock;
  readonly signal: AbortSignal;
  readonly onEnded: (attempt: Attempt, how: string) => void;
}

type TransportRequestSignal = Parameters<Transport>[1]["signal"];

/** One request on its way through a network that has no sockets. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #signal: TransportRequestSignal;
  readonly #onAbort = (): void => this.#fail(aborted(), "aborted");
  #reject: ((error: Error) => void) | undefined;
  #cancelTimer: () => void = () => undefined;
  #error: Error | undefined;
  #isOver = false;
  #piece = 0;
  /** The arrival of the next piece, by the process's monotonic clock. */
  #nextAt = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#signal = options.signal;
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get isProbe(): boolean {
    return this.#options.attempt.isProbe;
  }

  get call(): string {
    return this.#options.attempt.call;
  }

  get upstream(): string {
    return this.#options.attempt.upstream;
  }

  /** Resolves when the headers have arrived. */
  open(): Promise<TransportResponse> {
    const { script } = this.#options;
    if (this.#signal.aborted) this.#onAbort();
    if (script.connect === "refused") {
      return this.#after(1, () => this.#fail(networkError("ConnectionRefused"), "refused"));
    }
    const isSilent = script.connect === "hanging" || script.headersAfterMs === Infinity;
    if (isSilent) return this.#after(undefined, () => undefined);
    return this.#after(script.headersAfterMs, (resolve) => {
      if (script.isResetBeforeHeaders) {
        this.#fail(networkError("ECONNRESET"), "reset before headers");
      } else resolve(this.#respond());
    });
  }

  /** The reading process has ended. */
  drop(): void {
    this.#end("dropped");
  }

  #respond(): TransportResponse {
    const { script, attempt, clock } = this.#options;
    attempt.headersAt = clock.toVirtual(clock.monotonic());
    const { status } = script;
    this.#nextAt = this.#options.clock.monotonic();
    const reader: TransportReader = { read: () => this.#read() };
    return {
      ok: status >= 200 && status < 300,
      status,
      headers: new Headers(script.headers),
      body: { getReader: () => reader },
      bytes: () => this.#readAll(),
    };
  }

  async #readAll(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for (;;) {
      const { done, value } = await this.#read();
      if (value !== undefined) pieces.push(value);
      if (done) return Buffer.concat(pieces);
    }
  }

  /** Pieces that arrived while nobody read are buffered. */
  #read(): Promise<{ done: boolean; value?: Uint8Array }> {
    const { script, clock, attempt } = this.#options;
    const piece = script.pieces[this.#piece];
    if (piece === undefined) return this.#readEnd();
    this.#piece += 1;
    this.#nextAt += piece.afterMs;
    const waitMs = this.#nextAt - clock.monotonic();
    const arrive = (): { done: boolean; value: Uint8Array } => {
      attempt.lastByteAt = clock.toVirtual(clock.monotonic());
      return { done: false, value: piece.bytes };
    };
    if (waitMs <= 0 && this.#error === undefined) return Promise.resolve(arrive());
    return this.#after(waitMs, (resolve) => resolve(arrive()));
  }

  #readEnd(): Promise<{ done: boolean }> {
    switch (this.#options.script.ending) {
      case "silent":
        return this.#after(undefined, () => undefined);
      case "reset":
        return this.#after(1, () => this.#fail(networkError("ECONNRESET"), "reset"));
      case "closed":
        return this.#after(0, (resolve) => {
          this.#end("closed");
          resolve({ done: true });
        });
    }
  }

  /** Rejects if the connection fails first; without a time this is the only end. */
  #after<Value>(
    delayMs: number | undefined,
    run: (resolve: (value: Value) => void) => void,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (this.#error !== undefined) return reject(this.#error);
      this.#reject = reject;
      if (delayMs === undefined) return;
      this.#cancelTimer = this.#options.clock.schedule(() => run(resolve), delayMs);
    });
  }

  #fail(error: Error, how: string): void {
    if (this.#isOver) return;
    this.#error = error;
    this.#end(how);
    this.#reject?.(error);
  }

  #end(how: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelTimer();
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#options.onEnded(this.#options.attempt, how);
  }
}

function aborted(): Error {
  return new DOMException("The operation was aborted.", "AbortError");
}

function networkError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
