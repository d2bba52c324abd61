import type { Shutdown } from "../shutdown.ts";
import type { CountedRequest, RequestKind } from "../../domain/limits/limit-scope.ts";
import type { Clock } from "../../domain/clock.ts";
import type { CredentialForm } from "../../domain/keys/api-key.ts";
import type { Caller } from "../../domain/keys/key.ts";
import type { Environment } from "../../domain/model.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import type { NetworkList } from "../../domain/network.ts";
import type { BodyLimits } from "../body/read-body.ts";
import type { CorsPolicy } from "../cors.ts";
import type { AnonymousAdminCall, ArrivingRequest } from "./route.ts";
import type { RouteTable } from "./route-table.ts";
import type { Dialect } from "../replies/error-reply.ts";
import type { Overload, PreparedRefusals } from "../replies/repeated-refusals.ts";
import type { Principal } from "../../domain/principal.ts";

export interface DispatchOptions {
  readonly routes: RouteTable;
  readonly clock: Clock;
  readonly newRequestId: (request: Request) => string;
  /** Required for routes that need a key. */
  readonly keyed?: KeyedAccess | undefined;
  /** Required for routes of the control plane. */
  readonly gate?: AdminGate | undefined;
  /** Read for each request: a reload changes it. */
  readonly edge: () => EdgeSettings;
  readonly shutdown: Pick<Shutdown, "closesConnections" | "isRefusing">;
  readonly onHandled: (event: HandledRequest) => void;
}

/** Authentication and request limits for routes that need a key. */
export interface KeyedAccess {
  readonly snapshot: () => Snapshot;
  /** Called once for each dialect. */
  readonly authenticate: (form: CredentialForm) => Authenticate;
  /** Counts a request of a key before its body is read. Throws 429. */
  readonly count?: CountArrival | undefined;
  /** Set where calls are shed under overload. */
  readonly overload?: Overload | undefined;
}

/** A dialect with its authentication and prepared refusals. */
export interface Surface {
  readonly dialect: Dialect;
  readonly access: KeyedAccess;
  readonly authenticate: Authenticate;
  readonly refusals: PreparedRefusals;
}

/** Throws 401, 403 or 503. Reads the address only when the key is bound to networks. */
type Authenticate = (text: string, environment: Environment, address: () => string) => Caller;

export type CountArrival = (
  kind: RequestKind,
  request: ArrivingRequest,
) => CountedRequest | undefined | Promise<CountedRequest | undefined>;

export interface EdgeSettings {
  readonly cors: CorsPolicy;
  readonly bodyLimits: BodyLimits;
  readonly maxHeaders: number;
  /** Peers whose `x-forwarded-for` is used. */
  readonly trustedProxies: NetworkList;
}

/** A request of the control plane before it is authenticated. */
type AdminRequest = Pick<AnonymousAdminCall, "request" | "address"> & {
  /** Not a use of the session. */
  readonly isPassive?: boolean | undefined;
};

/** Access to the control plane; implemented by `control/sign-in`. */
export interface AdminGate {
  /** Throws 421 for an unknown host, or one that is not `inside`; `host` has no port. */
  checkHost(host: string, wanted?: "inside"): void;
  /**
   * The principal of a session or a token. Throws 401 without one, 403 for a wrong origin or a
   * missing CSRF token, 429 for too many requests.
   */
  identify(request: AdminRequest): Promise<Principal>;
  /** Whether the request would still be of this principal. */
  isStill(request: Pick<AdminRequest, "request">, principal: Principal): Promise<boolean>;
  /** For routes before sign-in: throws 403 for a wrong origin, 429 for too many requests. */
  checkAnonymous(request: AdminRequest): void;
}
