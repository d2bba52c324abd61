import type { CallAsKey } from "../../control/playground/playground.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import { callsSocketOf, type SiblingPlace } from "./siblings.ts";

const ticketLength = 43;

/**
 * Calls the main thread of this process as a key, over HTTP. The ticket is in the memory of this
 * thread alone; the main thread gets its digest.
 */
export function createTickets({
  random,
  ...place
}: SiblingPlace & { readonly random: RandomBytes }) {
  const ticket = randomBase62(ticketLength, random);
  const unix = callsSocketOf(place);
  const callAsKey = (call: CallAsKey): Promise<Response> => {
    const { id, path, host, keyId, address, body, signal } = call;
    const headers = {
      authorization: `Bearer ${ticket} ${keyId} ${address}`,
      "content-type": "application/json",
      "accept-encoding": "identity",
      "x-request-id": id,
    };
    // The deadlines of the call apply.
    const init = { method: "POST", headers, body, signal, unix, timeout: false };
    return fetch(`http://${host}${path}`, init);
  };
  return { callAsKey, digest: new Bun.CryptoHasher("sha256").update(ticket).digest("hex") };
}
