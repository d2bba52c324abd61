import type { Principal } from "../../domain/accounts/user.ts";

/** A request of the control plane before anybody is known to have sent it. */
export interface AdminRequest {
  readonly request: Request;
  /** Network address of the caller, as far as proxies are trusted. */
  readonly address: string;
}

/** Who may come in to the control plane; `control/sign-in` decides. */
export interface AdminGate {
  /** Throws 421 for a host, without port, to which the listener does not answer. */
  checkHost(host: string): void;
  /**
   * The principal of a session or a token. Throws 401 without one, 403 for a wrong origin or a
   * missing CSRF token, 429 for too many requests.
   */
  identify(request: AdminRequest): Promise<Principal>;
  /** For routes before sign-in: throws 403 for a wrong origin, 429 for too many requests. */
  checkAnonymous(request: AdminRequest): void;
}
