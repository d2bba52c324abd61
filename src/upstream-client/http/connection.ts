import type { Socket, SocketHandler } from "bun";
import { errorCode } from "../../domain/system-files.ts";
import type { Origin } from "./address.ts";
import { ClientError } from "./request-head.ts";
import type { Carrier, Exchange } from "./exchange.ts";
import { ResponseReader } from "./answer/response-reader.ts";
import { identityError, tlsOptions, Tunnel } from "./tunnel.ts";

/** The owner of a connection, which opened it. */
export interface ConnectionOwner {
  onOpen(connection: Connection): void;
  onOpenFailed(connection: Connection, error: Error): void;
  /** An answer is complete, and the connection can carry another request. */
  onFree(connection: Connection): void;
  /** A kept connection was dead: the server has most likely not read the request. */
  onStale(exchange: Exchange): void;
  /** Called once for each connection that had opened. */
  onClosed(connection: Connection): void;
  nowMs(): number;
}

/**
 * If a server closes an idle connection while a request is being sent, it does so within this time,
 * before a byte of an answer. If it closes it later, it had received the request.
 */
const lostWithinMs = 1_000;
/** Models may think for minutes; network devices would drop a silent connection. */
const keepAliveProbeMs = 30_000;
/** A body up to this size is sent together with the head. */
const smallBodyLength = 64 * 1024;

/** One connection to a server, which carries one exchange at a time. */
export class Connection implements Carrier {
  readonly openedAt: number;
  /** The exchange that caused it to be opened. */
  readonly openedFor: Exchange;
  readonly #origin: Origin;
  readonly #owner: ConnectionOwner;
  readonly #reader = new ResponseReader();
  #socket: Socket<Connection> | undefined;
  /** Set until the proxy has opened the tunnel. */
  #tunnel: Tunnel | undefined;
  #exchange: Exchange | undefined;
  #outgoing: Outgoing | undefined;
  #sentAt = 0;
  #idleSince: number | undefined;
  /** Whether it had carried or awaited another request before the current one. */
  #isReused = false;
  #isWanted = true;
  #state: "opening" | "open" | "closed" = "opening";
  /** Whether the server has closed its side properly. */
  #isEnded = false;

  constructor(origin: Origin, owner: ConnectionOwner, openedFor: Exchange) {
    this.#origin = origin;
    this.#owner = owner;
    this.openedFor = openedFor;
    this.openedAt = owner.nowMs();
  }

  /** How long the server keeps it idle, if stated. */
  get keepAliveSeconds(): number | undefined {
    return this.#reader.keepAliveSeconds;
  }

  /** When it became idle. */
  get idleSince(): number {
    return this.#idleSince ?? Infinity;
  }

  open(): void {
    const { proxy, isSecure } = this.#origin;
    const isTunnel = proxy !== undefined && isSecure;
    if (isTunnel) this.#tunnel = new Tunnel(this.#origin, proxy);
    const { hostname, port } = proxy ?? this.#origin;
    const tls = isSecure && !isTunnel ? tlsOptions(this.#origin) : undefined;
    const options = { hostname, port, data: this, socket: handlers, ...(tls && { tls }) };
    // It throws for TLS options that the runtime cannot read.
    Promise.try(() => Bun.connect<Connection>(options)).catch((error: unknown) =>
      this.#failOpening(error),
    );
  }

  /** Sends a request; the connection must be open and free. */
  begin(exchange: Exchange): void {
    const { request, head } = exchange;
    const socket = this.#socket;
    if (request === undefined || socket === undefined) return this.#owner.onFree(this);
    this.#exchange = exchange;
    exchange.carrier = this;
    this.#reader.begin(exchange);
    this.#sentAt = this.#owner.nowMs();
    if (this.#idleSince !== undefined) {
      socket.ref();
      this.#isReused = true;
    }
    this.#idleSince = undefined;
    const { body } = request;
    if (typeof body === "string" && body.length <= smallBodyLength) {
      const text = head + body;
      const written = socket.write(text);
      if (written === head.length + exchange.bodyBytes) return;
      const rest = Buffer.from(text).subarray(Math.max(0, written));
      this.#outgoing = new Outgoing([rest], "");
    } else if (typeof body === "string") this.#outgoing = new Outgoing([Buffer.from(head)], body);
    else this.#outgoing = new Outgoing([Buffer.from(head), ...(body === null ? [] : [body])], "");
    this.#flush();
  }

  /** Keeps it idle. An idle connection does not keep the process alive. */
  keep(nowMs: number): void {
    this.#idleSince = nowMs;
    this.#socket?.unref();
  }

  /** No request waits for it any more; false if it cannot be closed yet. */
  stopOpening(): boolean {
    this.#isWanted = false;
    // The runtime cannot end a connection before the other side has accepted it.
    if (this.#socket === undefined) return false;
    this.#destroy();
    return true;
  }

  /** Closes an idle connection. */
  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#socket?.end();
    this.#owner.onClosed(this);
  }

  /** Closes the connection: the rest of the answer is not needed. */
  abandon(exchange: Exchange): void {
    if (this.#exchange === exchange) this.#destroy();
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    if (this.#state === "open") this.#socket?.resume();
  }

  onSocketOpen(socket: Socket<Connection>): void {
    this.#socket = socket;
    if (this.#state === "closed") return socket.terminate();
    // No deadline would end a handshake that nobody waits for.
    if (!this.#isWanted && this.#origin.isSecure) {
      return this.#failOpening(new ClientError("Cancelled", "connecting"));
    }
    if (this.#tunnel !== undefined) socket.write(this.#tunnel.request);
    else if (!this.#origin.isSecure) this.#opened(socket);
  }

  /** Nothing is written before the server's certificate is verified. */
  onHandshake(socket: Socket<Connection>, isDone: boolean, error: Error | null): void {
    // A server may start another handshake later.
    if (this.#socket !== socket || this.#state !== "opening") return;
    if (!isDone || error !== null || !socket.authorized) {
      return this.#failOpening(error ?? new ClientError("Unauthorized", "connecting"));
    }
    const mismatch = identityError(this.#origin, socket);
    if (mismatch !== undefined) return this.#failOpening(mismatch);
    this.#opened(socket);
  }

  onData(socket: Socket<Connection>, bytes: Buffer): void {
    if (this.#socket !== socket || this.#state === "closed") return;
    if (this.#tunnel !== undefined) return this.#readTunnel(this.#tunnel, socket, bytes);
    const exchange = this.#exchange;
    // An answer without a request.
    if (exchange === undefined) {
      return this.#state === "opening" ? this.#failOpening(undefined) : this.#destroy();
    }
    try {
      this.#reader.push(bytes);
    } catch (error) {
      this.#destroy();
      exchange.fail(asError(error));
      return;
    }
    // The reader of the answer may have cancelled it meanwhile.
    if (this.#exchange === exchange && this.#reader.isOver) this.#finish();
  }

  onDrain(socket: Socket<Connection>): void {
    if (this.#socket === socket) this.#flush();
  }

  onSocketEnd(socket: Socket<Connection>): void {
    if (this.#socket === socket) this.#isEnded = true;
  }

  onSocketClose(socket: Socket<Connection>, error: Error | undefined): void {
    if (this.#socket !== socket || this.#state === "closed") return;
    if (this.#state === "opening") return this.#failOpening(error);
    const exchange = this.#exchange;
    this.#destroy();
    if (exchange !== undefined) this.#lose(exchange, error);
  }

  #opened(socket: Socket<Connection>): void {
    this.#state = "open";
    socket.setKeepAlive(true, keepAliveProbeMs);
    this.#owner.onOpen(this);
  }

  #failOpening(error: unknown): void {
    if (this.#state !== "opening") return;
    this.#state = "closed";
    this.#socket?.terminate();
    const code = errorCode(error) ?? "ConnectionClosed";
    const reason =
      error instanceof ClientError ? error : new ClientError(code, "connecting", { cause: error });
    this.#owner.onOpenFailed(this, reason);
  }

  #readTunnel(tunnel: Tunnel, socket: Socket<Connection>, bytes: Buffer): void {
    try {
      if (!tunnel.push(bytes)) return;
      this.#tunnel = undefined;
      const upgrade = { data: this, tls: tlsOptions(this.#origin), socket: handlers };
      const [raw] = socket.upgradeTLS<Connection>(upgrade);
      // The callback would get a copy of every encrypted byte.
      raw.reload({ socket: silentHandlers });
    } catch (error) {
      this.#failOpening(error);
    }
  }

  #flush(): void {
    const socket = this.#socket;
    if (this.#outgoing === undefined || socket === undefined) return;
    if (this.#outgoing.flush(socket)) this.#outgoing = undefined;
  }

  #finish(): void {
    this.#exchange = undefined;
    this.#isReused = true;
    // A server may answer before it has read the whole request.
    if (!this.#reader.keepsOpen || this.#outgoing !== undefined) return this.#destroy();
    this.#owner.onFree(this);
  }

  #lose(exchange: Exchange, error: Error | undefined): void {
    if (this.#reader.hasBegun) {
      try {
        const isInOrder = error === undefined && this.#isEnded;
        if (!isInOrder) throw new ClientError(codeOf(error), "answering");
        this.#reader.close();
      } catch (reason) {
        exchange.fail(asError(reason));
      }
      return;
    }
    const isAtOnce = this.#owner.nowMs() - this.#sentAt < lostWithinMs;
    if (this.#isReused && isAtOnce) return this.#owner.onStale(exchange);
    exchange.fail(new ClientError(codeOf(error), "unanswered", { cause: error }));
  }

  #destroy(): void {
    const state = this.#state;
    if (state === "closed") return;
    this.#state = "closed";
    this.#exchange = undefined;
    this.#outgoing = undefined;
    this.#socket?.terminate();
    if (state === "open") this.#owner.onClosed(this);
  }
}

function codeOf(error: unknown): string {
  return errorCode(error) ?? "ConnectionClosed";
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Shared by all connections: the runtime keeps one for each object. */
const handlers: SocketHandler<Connection> = {
  open: (socket) => socket.data.onSocketOpen(socket),
  handshake: (socket, isDone, error) => socket.data.onHandshake(socket, isDone, error),
  data: (socket, bytes) => socket.data.onData(socket, bytes),
  drain: (socket) => socket.data.onDrain(socket),
  end: (socket) => socket.data.onSocketEnd(socket),
  close: (socket, error) => socket.data.onSocketClose(socket, error),
  error: (socket, error) => socket.data.onSocketClose(socket, error),
  // The promise of `Bun.connect` says the same.
  connectError: () => undefined,
};

/** The runtime requires a handler. */
const silentHandlers: SocketHandler<Connection> = { drain: () => undefined };

/** How much of a long text is encoded at a time. */
const portionLength = 256 * 1024;

/**
 * The rest of a request that the socket did not take at once. A long text is encoded piece by
 * piece, as the socket takes it, so that it neither holds the event loop nor is in memory twice.
 */
class Outgoing {
  readonly #parts: Uint8Array[];
  #text: string;
  #at = 0;

  /** `parts` are written before `text`. */
  constructor(parts: Uint8Array[], text: string) {
    this.#parts = parts;
    this.#text = text;
  }

  /** Whether all of it is written; false also if the socket is closed. */
  flush(socket: Pick<Socket, "write">): boolean {
    for (;;) {
      const part = this.#parts.shift() ?? this.#nextPortion();
      if (part === undefined) return true;
      const written = socket.write(part);
      if (written < part.byteLength) {
        this.#parts.unshift(written > 0 ? part.subarray(written) : part);
        return false;
      }
    }
  }

  #nextPortion(): Uint8Array | undefined {
    const text = this.#text;
    if (this.#at >= text.length) return undefined;
    let end = Math.min(text.length, this.#at + portionLength);
    // A pair of surrogates is one character.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    const portion = Buffer.from(text.slice(this.#at, end));
    this.#at = end;
    if (end === text.length) this.#text = "";
    return portion;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
