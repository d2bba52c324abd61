import type { CountedRequest, RequestKind } from "../../domain/limits/limit-scope.ts";
import type { Clock } from "../../domain/clock.ts";
import type { CredentialForm } from "../../domain/keys/credential-form.ts";
import type { Caller } from "../../domain/keys/key.ts";
import type { Environment } from "../../domain/model.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import type { AdminGate } from "./admin-gate.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Refusal } from "../../domain/errors/refusal.ts";
import type { NetworkList } from "../../domain/network.ts";
import type { BodyLimits } from "../body/read-body.ts";
import type { CorsPolicy } from "../cors.ts";
import type { ArrivingRequest } from "./route.ts";
import type { RouteTable } from "./route-table.ts";
import type { Overload } from "../replies/shed-replies.ts";

export interface DispatchOptions {
  readonly routes: RouteTable;
  readonly clock: Clock;
  readonly newRequestId: () => string;
  readonly snapshot: () => Snapshot;
  /** Asked once for each dialect. */
  readonly authenticate: (form: CredentialForm) => Authenticate;
  /** Counts a request of a key before its body is read. Throws 429. */
  readonly count?: CountArrival | undefined;
  /** Needed where routes of the control plane are served. */
  readonly gate?: AdminGate | undefined;
  /** Read for each request: a reload changes it. */
  readonly edge: () => EdgeSettings;
  /** Whether every answer closes its connection, so that callers go elsewhere. */
  readonly isEnding: () => boolean;
  /** Whether new calls are refused. */
  readonly isDraining: () => boolean;
  /** Where there may be too much to do. */
  readonly overload?: Overload | undefined;
  readonly onHandled: (event: HandledRequest) => void;
}

/** Throws 401, 403 or 503. The address is asked for only when the key is bound to networks. */
export type Authenticate = (
  text: string,
  environment: Environment,
  address: () => string,
) => Caller;

export type CountArrival = (
  kind: RequestKind,
  request: ArrivingRequest,
) => CountedRequest | undefined | Promise<CountedRequest | undefined>;

/** What a listener accepts. */
export interface EdgeSettings {
  readonly cors: CorsPolicy;
  readonly bodyLimits: BodyLimits;
  readonly maxHeaders: number;
  /** Whose `x-forwarded-for` is believed. */
  readonly trustedProxies: NetworkList;
}

/** What the log and the metrics learn of a request. */
export interface HandledRequest {
  readonly id: string;
  readonly method: string;
  /** Path of the route's row, or `other`: few values, whatever callers send. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** Present when the answer is an error. */
  readonly error: GatewayError | undefined;
  /** Present when the gateway itself refused and says why, with the caller as far as it is known. */
  readonly refusal: Refusal | undefined;
  /** Whose refusals come so fast that they are made once and sent again as they are. */
  readonly repeatedOf: "key" | "address" | undefined;
}
