import type { Principal } from "../../domain/accounts/user.ts";
import type { AdminGate } from "./admin-gate.ts";

/** A gate that tells who comes through, for what is kept of a refusal later on. */
export function notingGate(gate: AdminGate, note: (principal: Principal) => void): AdminGate {
  return {
    checkHost: (host) => gate.checkHost(host),
    checkAnonymous: (request) => gate.checkAnonymous(request),
    async identify(request) {
      const principal = await gate.identify(request);
      note(principal);
      return principal;
    },
  };
}
