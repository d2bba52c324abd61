import type { ProblemKind } from "../../store/coordinator/valkey/connection/connection-problem.ts";

/** What to do when the server of `limits.store` cannot be used. */
export function adviceOnLimitStore(kind: ProblemKind): string {
  switch (kind) {
    case "refused":
      return "start the server, or correct the host and port of limits.store: nothing listens there";
    case "unknown-host":
      return "correct the host in limits.store, or the name server of this machine";
    case "silent":
      return "check that the server runs and is not stuck, the host of limits.store, and firewalls";
    case "certificate":
      return (
        "set limits.ca to the authority that signed the certificate of the server, and write the " +
        "host in limits.store as the certificate names it"
      );
    case "encryption":
      return "write limits.store as valkeys:// for a server with TLS, and as valkey:// for one without";
    case "password":
      return "correct the user and the password in limits.store, or create that user on the server";
    case "rights":
      return "give the user of limits.store the rights that docs/operations.md lists";
    case "replica":
      return "check the address in limits.store: of a primary, or of the Sentinels that know it";
    case "other":
      return (
        "check the server, and limits.store: `redis-cli` with the same address, user and password " +
        "must connect from here"
      );
    default:
      return kind satisfies never;
  }
}
