import type { ConnectionSettings, Proxies } from "../../src/domain/upstream-settings.ts";
import { noProxies } from "../../src/domain/upstream-settings.ts";
import { createUpstreamClient } from "../../src/upstream-client/http/http-client.ts";
import type {
  Cancellable,
  TransportRequest,
  TransportResponse,
} from "../../src/upstream-client/transport.ts";
import { plainConnections } from "./pipeline-fixtures.ts";

export interface HarnessOptions {
  readonly proxies?: Proxies;
  readonly mostConnections?: number;
  readonly connections?: Partial<ConnectionSettings>;
}

export interface SentRequest {
  readonly answer: Promise<TransportResponse>;
  /** What the client told of it, in order. */
  readonly told: readonly string[];
  readonly cancel: () => void;
}

/** A client of its own, with a clock that can be moved. */
export function clientHarness(options: HarnessOptions = {}) {
  let aheadMs = 0;
  const { proxies = noProxies, mostConnections = 100 } = options;
  const monotonic = (): number => performance.now() + aheadMs;
  const client = createUpstreamClient({ proxies, mostConnections, monotonic });
  const connections = { ...plainConnections, idleMs: 60_000, ...options.connections };
  const send = (url: string, values: Partial<TransportRequest> = {}): SentRequest => {
    const told: string[] = [];
    let running: Cancellable | undefined;
    const progress = {
      started: (request: Cancellable) => void (running = request),
      connecting: () => void told.push("connecting"),
      connected: () => void told.push("connected"),
    };
    const request = { method: "POST", headers: {}, body: "{}", connections, progress, ...values };
    // A client that refuses a request does so before it returns.
    const answer = new Promise<TransportResponse>((resolve) => resolve(client(url, request)));
    return { answer, told, cancel: () => running?.cancel() };
  };
  return {
    send,
    /** The status and the whole body. */
    ask: async (url: string, values: Partial<TransportRequest> = {}) => {
      const { answer } = send(url, values);
      const response = await answer;
      return { status: response.status, headers: response.headers, text: await textOf(response) };
    },
    passTime: (byMs: number) => void (aheadMs += byMs),
  };
}

export async function textOf(response: TransportResponse): Promise<string> {
  return Buffer.concat(await piecesOf(response)).toString();
}

export async function piecesOf(response: TransportResponse): Promise<readonly Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const piece = await nextPiece(response);
    if (piece === undefined) return pieces;
    pieces.push(piece);
  }
}

/** Undefined at the end. */
export async function nextPiece(response: TransportResponse): Promise<Uint8Array | undefined> {
  for (;;) {
    const piece = response.take();
    if (piece !== undefined || response.isOver) return piece;
    await new Promise<void>((resolve) => response.whenReady(resolve));
  }
}
