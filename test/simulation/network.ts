import { ClientError, type FailedStage } from "../../src/upstream-client/http/request-head.ts";
import type { RequestProgress, TransportResponse } from "../../src/upstream-client/transport.ts";
import type { Attempt } from "./records.ts";
import type { Script } from "./upstream-answer.ts";
import type { ProcessClock } from "./virtual-time.ts";

export interface ConnectionOptions {
  readonly attempt: Attempt;
  readonly script: Script;
  /** The process that sent the request; nothing reaches an ended one. */
  readonly clock: ProcessClock;
  readonly progress: RequestProgress;
  readonly onEnded: (attempt: Attempt, how: string) => void;
}

/** One request on its way through a network that has no sockets. */
export class Connection implements TransportResponse {
  readonly #options: ConnectionOptions;
  status = 0;
  headers = new Headers();
  #reject: ((error: Error) => void) | undefined;
  #cancelTimer: () => void = () => undefined;
  #error: Error | undefined;
  #isOver = false;
  #piece = 0;
  /** The piece that the reader was told of. */
  #ready: Uint8Array | undefined;
  /** Whether the reader was told of the end. */
  #isTaken = false;
  /** The arrival of the next piece, by the process's monotonic clock. */
  #nextAt = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    options.progress.started({ cancel: () => this.#fail(aborted(), "aborted") });
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
    if (script.connect === "refused") {
      return this.#after(1, () =>
        this.#fail(new ClientError("ECONNREFUSED", "connecting"), "refused"),
      );
    }
    if (script.connect === "hanging") this.#options.progress.connecting();
    const isSilent = script.connect === "hanging" || script.headersAfterMs === Infinity;
    if (isSilent) return this.#after(undefined, () => undefined);
    return this.#after(script.headersAfterMs, (resolve) => {
      if (script.isResetBeforeHeaders) {
        this.#fail(reset("unanswered"), "reset before headers");
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
    this.#nextAt = this.#options.clock.monotonic();
    this.status = script.status;
    this.headers = new Headers(script.headers);
    return this;
  }

  arrived(): undefined {
    return undefined;
  }

  get isOver(): boolean {
    return this.#isTaken;
  }

  take(): Uint8Array | undefined {
    const piece = this.#ready;
    this.#ready = undefined;
    if (piece === undefined && this.#error !== undefined) throw this.#error;
    return piece;
  }

  whenReady(call: () => void): void {
    this.#read().then((piece) => {
      this.#ready = piece;
      this.#isTaken = piece === undefined;
      call();
    }, call);
  }

  /** Pieces that arrived while nobody read are buffered. */
  #read(): Promise<Uint8Array | undefined> {
    const { script, clock, attempt } = this.#options;
    const piece = script.pieces[this.#piece];
    if (piece === undefined) return this.#readEnd();
    this.#piece += 1;
    this.#nextAt += piece.afterMs;
    const waitMs = this.#nextAt - clock.monotonic();
    const arrive = (): Uint8Array => {
      attempt.lastByteAt = clock.toVirtual(clock.monotonic());
      return piece.bytes;
    };
    if (waitMs <= 0 && this.#error === undefined) return Promise.resolve(arrive());
    return this.#after(waitMs, (resolve) => resolve(arrive()));
  }

  #readEnd(): Promise<undefined> {
    switch (this.#options.script.ending) {
      case "silent":
        return this.#after(undefined, () => undefined);
      case "reset":
        return this.#after(1, () => this.#fail(reset("answering"), "reset"));
      case "closed":
        return this.#after(0, (resolve) => {
          this.#end("closed");
          resolve(undefined);
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
    this.#options.onEnded(this.#options.attempt, how);
  }
}

function aborted(): Error {
  return new ClientError("Cancelled", "answering");
}

function reset(stage: FailedStage): Error {
  return new ClientError("ECONNRESET", stage);
}
