import type { RequestKind } from "../../domain/limits/limit-scope.ts";
import type { Principal, Role, Scope } from "../../domain/principal.ts";
import type { Dialect, Reply } from "../replies/error-reply.ts";
import type { AnswerMemory, Call, CallMemory } from "../../snapshot/call.ts";
import type { MemoryHold } from "../../domain/waiting/memory-gate.ts";
import type { StreamEnd } from "../replies/event-stream.ts";

/** A request as a handler sees it. */
export interface PublicCall {
  /** `req_` and 32 hexadecimal digits; also the id of the call in the ledger. */
  readonly id: string;
  readonly request: Request;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Monotonic milliseconds. */
  readonly receivedAt: number;
  /** The value of the route's trailing `*`, percent-decoded, or an empty text. */
  readonly parameter: string;
}

/** A request with a valid key of the environment its host names. */
export interface KeyCall extends Omit<PublicCall, "signal">, Call {
  readonly id: string;
  readonly receivedAt: number;
  readonly dialect: Dialect;
  /** Reads the body; only once, only on POST. */
  readBody(): Promise<Uint8Array>;
  /** Its body is counted until the reply is made and nobody keeps it. */
  readonly memory: Pick<MemoryHold, "takesMore"> & CallMemory;
  /** Memory for the answer, which must be released. */
  readonly answerMemory: AnswerMemory;
  /** Must be called at the end of a streamed body, as `onEnd` of `EventStreamOptions`. */
  streamEnded(end: StreamEnd): boolean;
}

/** A request of a key before its body is read. */
export type ArrivingRequest = Pick<KeyCall, "caller" | "environment" | "snapshot" | "origin">;

/** A request of the control plane that the principal's role and scopes permit. */
export interface AdminCall extends PublicCall {
  readonly principal: Principal;
  /** Network address of the caller, as far as proxies are trusted. */
  readonly address: string;
  /** Values of the path's parameters by name, percent-decoded. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Whether the credential still stands for the same principal; does not count as its use. */
  readonly isStillSignedIn: () => Promise<boolean>;
  /** Reads the body; only once, not on GET. Empty when none was sent. */
  readBody(): Promise<Uint8Array>;
}

/** A request without a principal, such as signing in. */
export type AnonymousAdminCall = Omit<AdminCall, "principal" | "isStillSignedIn">;

interface RouteShape {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Exact, or with a trailing `*` for the rest of the path, or with parameters such as `{id}`. */
  readonly path: string;
  /**
   * Admin routes answer at known hosts. `any`: for probes, which send an address as host; `inside`: not
   * at the public one, where account holders sign in.
   */
  readonly hosts?: "any" | "inside";
  /** It always refuses, so the list of endpoints in a 404 leaves it out. */
  readonly isUnlisted?: true;
}

export interface KeyRoute extends RouteShape {
  readonly access: "key";
  readonly dialect: Dialect;
  /** Which limit of requests in the plan applies. */
  readonly counts: RequestKind;
  /** The route for requests with a header by which clients of another dialect are known. */
  readonly whenSent?: { readonly header: string; readonly route: KeyRoute } | undefined;
  handle(call: KeyCall): Reply | Promise<Reply>;
}

/** `access` is required, so every route shows who may call it. */
export type Route =
  | (RouteShape & {
      readonly access: "public";
      handle(call: PublicCall): Reply | Promise<Reply>;
    })
  | KeyRoute
  | (RouteShape & {
      /** For requests without a principal; origin and rate are checked. */
      readonly access: "anonymous";
      handle(call: AnonymousAdminCall): Reply | Promise<Reply>;
    })
  | (RouteShape & {
      readonly access: "principal";
      readonly roles: readonly Role[];
      /** The scope that a token needs. */
      readonly scope: Scope;
      /** It does not keep a session alive. */
      readonly isPassive?: true;
      handle(call: AdminCall): Reply | Promise<Reply>;
    });
