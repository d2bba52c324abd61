import type { Caller } from "../domain/key.ts";
import type { Environment } from "../domain/model.ts";
import type { Snapshot } from "../pipeline/snapshot.ts";
import type { Reply } from "./reply.ts";

/** A request as a handler sees it. */
export interface PublicCall {
  /** `req_` and 32 hexadecimal digits; also the id of the call in the ledger. */
  readonly id: string;
  readonly request: Request;
  /** Fires when the caller leaves. */
  readonly signal: AbortSignal;
  /** Monotonic milliseconds. */
  readonly receivedAt: number;
  /** What the path has in place of the route's trailing `*`, percent-decoded; else empty. */
  readonly parameter: string;
}

/** A request with a valid key of the environment its host names. */
export interface KeyCall extends PublicCall {
  readonly caller: Caller;
  readonly environment: Environment;
  readonly snapshot: Snapshot;
  /** Reads the body; only once, only on POST. */
  readBody(): Promise<Uint8Array>;
  /** To be called at the end of a streamed body; for other answers it is done already. */
  resumeIdleTimer(): void;
}

interface RouteShape {
  readonly method: "GET" | "POST";
  /** Exact, or with a trailing `*` that takes the rest of the path, slashes included. */
  readonly path: string;
}

/** `access` is required: a route cannot be read without seeing who may call it. */
export type Route =
  | (RouteShape & {
      readonly access: "public";
      handle(call: PublicCall): Reply | Promise<Reply>;
    })
  | (RouteShape & {
      readonly access: "key";
      handle(call: KeyCall): Reply | Promise<Reply>;
    });
