import type { CountedRequest, RequestKind } from "../../domain/limits/limit-scope.ts";
import type { Caller } from "../../domain/keys/key.ts";
import type { Environment } from "../../domain/model.ts";
import type { Principal, Role, Scope } from "../../domain/accounts/user.ts";
import type { Dialect } from "../dialect.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import type { StreamEnd } from "../replies/event-stream.ts";
import type { Reply } from "../replies/reply.ts";

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
  readonly dialect: Dialect;
  /** Its request, as the limits of the key have counted it. */
  readonly counted?: CountedRequest | undefined;
  /** Reads the body; only once, only on POST. */
  readBody(): Promise<Uint8Array>;
  /** To be called at the end of a streamed body. */
  streamEnded(end: StreamEnd): void;
}

/** What is known of it before its body is read. */
export type ArrivingRequest = Pick<KeyCall, "caller" | "environment" | "snapshot">;

/** A request of the control plane by somebody who may make it, as far as role and scope say. */
export interface AdminCall extends PublicCall {
  readonly principal: Principal;
  /** Network address of the caller, as far as proxies are trusted. */
  readonly address: string;
  /** Segments of the path by the names in the route's braces, percent-decoded. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Reads the body; only once, not on GET. Empty when none was sent. */
  readBody(): Promise<Uint8Array>;
}

/** A request that comes before anybody has signed in, such as signing in. */
export type AnonymousAdminCall = Omit<AdminCall, "principal">;

interface RouteShape {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /**
   * Exact, or with a trailing `*` that takes the rest of the path, slashes included, or with
   * segments such as `{id}`.
   */
  readonly path: string;
  /** For probes, which ask by address: on the admin listener all others answer to known hosts. */
  readonly answersAnyHost?: true;
}

export interface KeyRoute extends RouteShape {
  readonly access: "key";
  readonly dialect: Dialect;
  /** Which requests of the plan it takes: those of calls, or the ones beside them. */
  readonly counts: RequestKind;
  handle(call: KeyCall): Reply | Promise<Reply>;
}

/** `access` is required: a route cannot be read without seeing who may call it. */
export type Route =
  | (RouteShape & {
      readonly access: "public";
      handle(call: PublicCall): Reply | Promise<Reply>;
    })
  | KeyRoute
  | (RouteShape & {
      /** For requests of the control plane without a principal; origin and rate are checked. */
      readonly access: "anonymous";
      handle(call: AnonymousAdminCall): Reply | Promise<Reply>;
    })
  | (RouteShape & {
      readonly access: "principal";
      readonly roles: readonly Role[];
      /** What a token must be allowed. */
      readonly scope: Scope;
      handle(call: AdminCall): Reply | Promise<Reply>;
    });
