import type { Principal } from "../../domain/accounts/user.ts";

/** A request of the control plane before it is authenticated. */
export interface AdminRequest {
  readonly request: Request;
  /** Network address of the caller, as far as proxies are trusted. */
  readonly address: string;
}

/** Access to the control plane; implemented by `control/sign-in`. */
export interface AdminGate {
  /** Throws 421 for an unknown host; `host` has no port. */
  checkHost(host: string): void;
  /**
   * The principal of a session or a token. Throws 401 without one, 403 for a wrong origin or a
   * missing CSRF token, 429 for too many requests.
   */
  identify(request: AdminRequest): Promise<Principal>;
  /** For routes before sign-in: throws 403 for a wrong origin, 429 for too many requests. */
  checkAnonymous(request: AdminRequest): void;
}
