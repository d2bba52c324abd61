import type { CountedRequest, RequestKind } from "../../domain/limits/limit-scope.ts";
import type { Clock } from "../../domain/clock.ts";
import type { CredentialForm } from "../../domain/keys/credential-form.ts";
import type { Caller } from "../../domain/keys/key.ts";
import type { Environment } from "../../domain/model.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import type { AdminGate } from "./admin-gate.ts";
import type { EdgeSettings } from "../edge-settings.ts";
import type { HandledRequest } from "./handled-request.ts";
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
