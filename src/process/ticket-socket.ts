import { timingSafeEqual } from "node:crypto";
import type { KeyedAccess } from "../edge/dispatch/dispatch-options.ts";
import { RouteTable } from "../edge/dispatch/route-table.ts";
import { createTicketAuthenticate, type KeyRules } from "../keys/authenticate.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import { callsSocketOf, type SiblingPlace } from "./control/siblings.ts";
import { startUnixListener, type UnixListener, type UnixPlan } from "./wiring/start-listener.ts";

export interface TicketSocketOptions {
  readonly place: SiblingPlace;
  /** SHA-256 of the ticket, in hexadecimal digits. */
  readonly digest: string;
  readonly keys: KeyRing;
  readonly rules: KeyRules;
  /** Those of the data listener; only calls of the playground are served. */
  readonly routes: RouteTable;
  readonly plan: Omit<UnixPlan, "routes" | "keyed"> & {
    readonly keyed: Omit<KeyedAccess, "authenticate">;
  };
}

/** What the playground may call. */
const paths: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/embeddings",
  "/v1/responses",
  "/v1/messages",
]);

/**
 * Takes calls of the process's own control thread, as a key whose secret nobody has. The socket is
 * this user's alone; besides, a call must carry the ticket, which only that thread holds in memory.
 * Throws when it cannot listen.
 */
export function serveTickets(options: TicketSocketOptions): UnixListener {
  const { place, keys, rules, routes, plan } = options;
  const digest = Buffer.from(options.digest, "hex");
  const isTicket = (text: string): boolean =>
    timingSafeEqual(new Bun.CryptoHasher("sha256").update(text).digest(), digest);
  return startUnixListener(callsSocketOf(place), {
    ...plan,
    keyed: {
      ...plan.keyed,
      authenticate: (form) => createTicketAuthenticate({ ...rules, form, secrets: keys, isTicket }),
    },
    routes: new RouteTable(
      routes.routes.filter(({ method, path }) => method === "POST" && paths.has(path)),
    ),
  });
}
