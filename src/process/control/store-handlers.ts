import type { ToControl } from "../messages.ts";
import type { Handlers } from "../thread-link.ts";
import type { Storage } from "../wiring/open-storage.ts";

/** The messages that a store answers alone. */
export function storeHandlers({
  renewal,
  replies,
  responses,
}: Pick<Storage, "renewal" | "replies" | "responses">) {
  return {
    "keys.outdated": (secret) => renewal.note(secret),
    "claims.claim": (wanted) => replies.claim(wanted),
    "claims.confirm": (held) => replies.confirm(held),
    "claims.release": (held) => replies.release(held),
    "claims.keep": (answered) => replies.keep(answered),
    "responses.put": (added) => responses.put(added),
    "responses.find": (wanted) => responses.find(wanted),
    "responses.remove": (wanted) => responses.remove(wanted),
  } satisfies Partial<Handlers<ToControl>>;
}
