import type { Socket, TCPSocketListener } from "bun";
import { RequestReader, type UpstreamRequest } from "../../../bench/upstream/request-reader.ts";
import { answerTo, refusalTo, type Piece, type Refusal } from "./answers.ts";
import { watchConnecting } from "./connection-watch.ts";
import { requestMarks, type Fault } from "./faults.ts";
import { silenceOf } from "./silence.ts";

/** A connection of the gateway to a double. */
interface Connection {
  readonly reader: RequestReader;
  readonly timers: Set<ReturnType<typeof setTimeout>>;
}

type ConnectionSocket = Socket<Connection>;

/** An upstream double on its own port, which speaks both wires and has one fault at a time. */
export class UpstreamDouble {
  readonly port: number;
  readonly #connections = new Set<ConnectionSocket>();
  /** Undefined while connections are refused. */
  #listener: TCPSocketListener<Connection> | undefined;
  /** The watch of ignored connections. */
  #blackHole: DisposableStack | undefined;
  #fault: Fault | undefined;
  #seen = 0;
  /** The times of failed requests and ignored connections; wall clock. */
  readonly failedAt: number[] = [];

  /** Throws if the port is in use. */
  constructor(port: number) {
    this.port = port;
    this.#listen();
  }

  break(fault: Fault): void {
    this.#fault = fault;
    if (fault === "refused") this.close();
    if (fault === "reset") this.#resetConnections();
    if (fault === "black-hole") this.#fallSilent();
  }

  /** Answers new requests, also on open connections; earlier ones stay unanswered. */
  repair(): void {
    this.#blackHole?.dispose();
    this.#blackHole = undefined;
    this.#fault = undefined;
    if (this.#listener === undefined) this.#listen();
  }

  close(): void {
    this.#listener?.stop();
    this.#listener = undefined;
    this.#resetConnections();
  }

  #fallSilent(): void {
    if (this.#listener === undefined) return;
    const silence = silenceOf(descriptorOf(this.#listener));
    const blackHole = new DisposableStack();
    silence.begin();
    blackHole.defer(() => silence.end());
    blackHole.use(watchConnecting(this.port, () => this.failedAt.push(Date.now())));
    this.#blackHole = blackHole;
  }

  #resetConnections(): void {
    for (const socket of this.#connections) socket.terminate();
  }

  #listen(): void {
    this.#listener = Bun.listen<Connection>({
      hostname: "127.0.0.1",
      port: this.port,
      socket: {
        open: (socket) => {
          socket.setNoDelay(true);
          socket.data = { reader: new RequestReader(), timers: new Set() };
          this.#connections.add(socket);
        },
        data: (socket, bytes) => {
          for (const request of socket.data.reader.push(bytes)) this.#serve(socket, request);
        },
        close: (socket) => {
          this.#connections.delete(socket);
          for (const timer of socket.data.timers) clearTimeout(timer);
        },
        error: () => undefined,
      },
    });
  }

  #serve(socket: ConnectionSocket, request: UpstreamRequest): void {
    this.#seen += 1;
    const fault = this.#fault === "half" && this.#seen % 2 === 0 ? undefined : this.#fault;
    if (fault === undefined) {
      this.#answer(socket, request);
      return;
    }
    this.failedAt.push(Date.now());
    this.#fail(socket, request, fault);
  }

  #fail(socket: ConnectionSocket, request: UpstreamRequest, fault: Fault): void {
    const refuse = (refusal: Refusal): void => void socket.write(refusalTo(request.path, refusal));
    switch (fault) {
      case "throttle-retry-after":
        return refuse({ status: 429, retryAfterSeconds: 5 });
      case "throttle":
        return refuse({ status: 429 });
      case "error-500":
        return refuse({ status: 500 });
      case "unavailable-503":
      case "half":
        return refuse({ status: 503 });
      case "refused":
      case "reset":
        socket.terminate();
        return;
      case "black-hole":
      case "slow-headers":
        return;
      case "stall":
        send(socket, answerTo({ ...request, isLong: false }).first);
    }
  }

  #answer(socket: ConnectionSocket, request: UpstreamRequest): void {
    const has = (mark: string): boolean => request.body.includes(mark);
    if (has(requestMarks.hang)) return;
    const { first, rest } = answerTo({ ...request, isLong: has(requestMarks.long) });
    send(socket, has(requestMarks.stall) ? first : [...first, ...rest]);
  }
}

function send(socket: ConnectionSocket, pieces: readonly Piece[]): void {
  const { timers } = socket.data;
  for (const { afterMs, bytes } of pieces) {
    const timer = setTimeout(() => {
      timers.delete(timer);
      socket.write(bytes);
    }, afterMs);
    timers.add(timer);
  }
}

/** The runtime has it, but its types do not. */
function descriptorOf(listener: object): number {
  if ("fd" in listener && typeof listener.fd === "number") return listener.fd;
  throw new Error("this runtime does not have the descriptor of a listener");
}
